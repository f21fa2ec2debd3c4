// A simulated job: processes that do nothing but send, receive and wait for each other, in simulated time, by discrete
// events. A message costs its sender `send`, travels `way` and `byte` for each byte, and costs its receiver `receive`
// (LogGP's o, L and G; its gap between messages is the larger of the two costs). A process does one thing after the
// other; what comes meanwhile waits in the order in which it came. Owns time, processes and messages; what they mean is
// the protocol's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace simulation {

using Process = std::uint32_t;

/// A message's costs: ns, and ns for each byte.
struct Costs {
    double send = 0;
    double receive = 0;
    double way = 0;
    double byte = 0;
};

struct Machine {
    Costs libosc;  // between nodes
    Costs host;    // of the host MPI, whose collectives make windows; between nodes
    Costs near;    // the same on a node
    // A barrier of a node: of two processes, and for each more.
    double meet = 0;
    double meet_more = 0;
    // What a process does for a new window by itself.
    double window = 0;
    // Reductions that the host's MPI_Comm_create takes as long as.
    double creates = 0;
    // What the first process of a node does for each process of a first window.
    double entry = 0;

    double meeting(std::uint32_t processes) const { return processes < 2 ? 0 : meet + meet_more * (processes - 2); }
};

enum class By : std::uint8_t { Libosc, Host, Near, Itself };

struct Message {
    Process to = 0;
    Process from = 0;
    By by = By::Libosc;
    std::uint8_t kind = 0;
    std::uint16_t round = 0;
    std::uint32_t behind = 0;  // the next that waits for its receiver; 0: none
    std::uint64_t number = 0;
};

/// What the processes do. A process may send and work when it is called for it; its time goes on by that.
class Protocol {
  public:
    virtual void begin(Process process) = 0;
    virtual void arrived(const Message& message) = 0;

  protected:
    ~Protocol() = default;
};

class Engine {
  public:
    Engine(const Machine& machine, std::uint32_t processes) : machine_(machine), states_(processes), messages_(1) {}

    const Machine& machine() const { return machine_; }
    std::uint32_t processes() const { return static_cast<std::uint32_t>(states_.size()); }

    /// When a process is free.
    double time(Process process) const { return states_[process].free; }
    /// It has waited until then.
    void until(Process process, double time) { states_[process].free = std::max(states_[process].free, time); }
    void work(Process process, double ns) { states_[process].free += ns; }

    /// `message.from` sends it; By::Itself: it goes on with that when it is free, behind what happens before.
    void send(Message message, std::size_t bytes = 0);

    /// Begins on every process, and goes on until nothing is left to do.
    void run(Protocol& protocol);

    /// How many were sent by libosc.
    std::uint64_t sent() const { return sent_; }
    /// When the last process was done.
    double end() const;

  private:
    struct State {
        double free = 0;
        std::uint32_t first = 0;  // of the messages that wait for it; 0: none
        std::uint32_t last = 0;
    };
    struct Event {
        double at;
        std::uint64_t order;
        std::uint32_t index;  // of the message that arrives, or of the process that takes its next one
        bool arrives;
        bool operator>(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
    };
    const Costs& costs(By by) const {
        return by == By::Libosc ? machine_.libosc : by == By::Host ? machine_.host : machine_.near;
    }
    void post(double at, std::uint32_t index, bool arrives) { events_.push({at, ++order_, index, arrives}); }
    void arrive(std::uint32_t index, double at);
    void take(Process process, double at, Protocol& protocol);

    const Machine machine_;
    std::vector<State> states_;
    std::vector<Message> messages_;  // from 1 on
    std::vector<std::uint32_t> unused_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t order_ = 0;
    std::uint64_t sent_ = 0;
};

}  // namespace simulation
