// The target's side of the network: the windows of this process that span nodes, and the execution of requests on them.
// Updates take the same stripe locks as every other path (invariant I1), locks the same words and queue as the
// processes of the node: what stands in the queue for a process of another node is a cell of the target's own.
//
// Not thread-safe: whoever drives the network holds its progress lock. No thread, no libfabric and no MPI here.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/arrivals.h"
#include "agent/leases.h"
#include "op/transport.h"
#include "sync/lock.h"
#include "transport/ofi/endpoint.h"
#include "transport/shm/regions.h"

namespace osc::net {

/// One window as its owner serves it. All of it outlives the registration.
struct Serving {
    std::uint64_t id = 0;
    std::byte* base = nullptr;            // displacement 0; null in dynamic windows
    std::uint64_t size = 0;               // bytes
    std::uint64_t unit = 1;               // bytes
    shm::RegionTable* regions = nullptr;  // dynamic windows: what is attached
    Leases* leases = nullptr;             // the same: what others know of it
    Caches* caches = nullptr;             // the same: what this process knows of others
    const shm::Slot* slot = nullptr;
    std::uint32_t rank = 0;       // of the owner in the window's group
    std::uint32_t processes = 0;  // of the window
    sync::Liveness* liveness = nullptr;
    const std::uint64_t* tokens = nullptr;  // of all processes, by rank
    ofi::Exposed exposed;
    ofi::Exposed words;  // of two-level locks, in windows that have them
};

/// Where answers go: (the sender's token, the request's number, status, what is returned).
class Answers {
  public:
    virtual void answer(std::uint64_t token, std::uint32_t number, Status status, const std::byte* data,
                        std::size_t bytes) = 0;

  protected:
    ~Answers() = default;
};

class Hosted {
  public:
    explicit Hosted(Answers& answers) : answers_(answers) {}
    ~Hosted();

    std::shared_ptr<Arrivals> add(const Serving& window);
    void remove(std::uint64_t id);

    /// A request, query or notice, with its sender, who is known to be in the job.
    void request(const Frame& frame, const std::byte* body);

    /// Goes on with what waited for a lock that has been granted by now, or for a fence, and answers who withdraws
    /// leases that nothing under way goes by any more. True while something waits for either: then it is to be called
    /// again soon.
    bool resume();
    /// Whether there is anything for resume() to look at.
    bool waits() const { return !busy_.empty() || !withdrawing_.empty(); }

    /// A process of another node has died: what it held is broken. What it asked for before is still done, and a lock
    /// that it waits for is broken when it gets it.
    void died(std::uint64_t token);

    /// Now and then: looks whether locks that are waited for belong to the dead of this node.
    void look_for_dead();

    /// Tokens of processes that hold a lock here which others wait for.
    void holders(std::vector<std::uint64_t>& tokens) const;

  private:
    struct Saved {  // a request that waits, copied
        std::uint32_t number = 0;
        std::size_t at = 0;  // of the record to go on with
        std::vector<std::byte> body;
        std::vector<std::byte> out;
        Status status = Status::Done;
    };
    struct Waiting {
        std::uint32_t rank;
        LockAsk ask;
    };
    struct Held {
        std::uint32_t rank;
        LockAsk ask;
    };
    struct Window {
        Serving serving;
        std::shared_ptr<Arrivals> arrivals = std::make_shared<Arrivals>();
        std::map<std::uint32_t, std::deque<Saved>> saved;  // by origin, in the order in which they came
        std::deque<Waiting> waiting;                       // for the lock; Passing in a queue of their own
        std::deque<Waiting> passing;
        std::size_t turns = 0;  // the first so many of `waiting` get it one after the other from who holds it
        std::vector<std::uint32_t> passed;  // origins that have got it so and are to go on
        bool queued = false;                // the next of `waiting` stands in the lock's queue
        bool passing_queued = false;        // the first of `passing`
        std::vector<std::pair<std::uint32_t, std::uint64_t>> fenced;  // origins, and the fences that they wait for
        std::vector<Held> held;
        std::vector<std::uint32_t> refused;  // origins whose lock was refused: what they do under it is not done
    };
    using Withdrawn = std::pair<std::uint64_t, std::uint32_t>;  // address and number of a lease
    struct Withdrawing {  // a query whose answer is due when all of `left` are dropped
        std::uint64_t window;
        std::uint32_t origin;
        std::uint64_t token;
        std::uint32_t number;
        Status status;
        std::vector<std::byte> out;
        std::vector<Withdrawn> left;
    };
    enum class Ran { Ended, Waits };

    Ran run(Window& window, std::uint32_t origin, const std::byte* body, std::size_t bytes, bool may_wait,
            std::size_t& at, Status& status, std::vector<std::byte>& out);
    Status execute(Window& window, std::uint32_t origin, const Record& record, const std::byte* data,
                   std::vector<std::byte>& out);
    Status access(Window& window, std::uint32_t origin, const Record& record, const std::byte* data, std::byte* out);
    Status withdraw(const Serving& window, std::uint32_t origin, const Record& record);
    void resume_withdrawing();
    bool lock(Window& window, std::uint32_t origin, LockAsk ask, Status& status);
    void unlock(Window& window, std::uint32_t origin);
    bool resume(Window& window);
    bool resume_fenced(Window& window);
    bool resume_queue(Window& window, std::deque<Waiting>& queue, bool& queued, std::size_t& turns);
    bool resume_passed(Window& window);
    void go_on(Window& window, std::uint32_t origin);
    sync::LockContext context(Window& window, std::uint32_t origin) const;

    Answers& answers_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Window>> windows_;
    std::vector<Window*> busy_;  // windows in which somebody waits for a lock
    std::vector<std::byte> out_;
    std::vector<Withdrawn> left_;  // by the message that is being executed
    std::vector<Withdrawing> withdrawing_;
};

}  // namespace osc::net
