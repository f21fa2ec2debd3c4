// Fences: a barrier of the node, a barrier of the nodes' first processes, a second barrier of the node. Then a process
// that expects close messages waits for them, and its node with it.
#include <utility>
#include <vector>

#include "net/target/arrivals.h"
#include "protocols.h"
#include "sync/dissemination.h"

namespace simulation {
namespace {

enum Kind : std::uint8_t { kStep, kStepAndClose, kClose, kReply, kEnter };
constexpr std::size_t kStepBytes = 40 + 16;           // a frame with a record
constexpr std::size_t kCountBytes = 16;               // for each count in a step's message
constexpr std::size_t kCloseBytes = 40 + 3 * 16 + 8;  // the fence to await, a put of 8 bytes, the close
constexpr std::size_t kReplyBytes = 40 + 8;

class Fences final : public Protocol {
  public:
    Fences(Engine& engine, const Job& job, bool put)
        : engine_(engine), job_(job), put_(put && job.nodes() > 1), states_(job.processes), nodes_(job.nodes()) {}

    void begin(Process process) override {
        Node& node = nodes_[job_.node_of(process)];
        const bool leads = job_.leader(job_.node_of(process)) == process;
        if (put_) {
            const Process target = job_.across(process, 1);
            ++node.summary.closes[target];
            // The first process's travels with its first step, which goes to the same.
            if (!leads) engine_.send({target, process, By::Libosc, kClose, 0, 0, states_[process].fences}, kCloseBytes);
        }
        if (meets(node, process)) {
            engine_.until(job_.leader(job_.node_of(process)), node.latest);
            ++node.meeting;
            node.round = 0;
            go_round(job_.node_of(process));
        }
    }

    void arrived(const Message& message) override {
        const auto list = static_cast<std::uint32_t>(message.number >> 32);
        const std::uint64_t number = message.number & 0xffffffffu;
        osc::net::Arrivals& arrivals = states_[message.to].arrivals;
        switch (message.kind) {
            case kEnter:
                return begin(message.to);
            case kClose:
                return close(message, number);
            case kReply:
                return;
            default:
                if (list != 0)
                    for (const auto& [process, closes] : std::exchange(count_lists_[list - 1], {}))
                        arrivals.count(message.from, process, closes, job_.processes);
                if (list != 0) free_lists_.push_back(list - 1);
                arrivals.arrived(message.from, number, message.round, 0);
                if (message.kind == kStepAndClose) close(message, number - 1);
                if (nodes_[job_.node_of(message.to)].meeting == number) go_round(job_.node_of(message.to));
        }
    }

  private:
    struct State {
        osc::net::Arrivals arrivals;
        std::uint64_t fences = 0;          // made
        std::uint64_t expected = 0;        // closes, since the window was made
        std::vector<std::uint64_t> early;  // fences that closes wait for
        bool awaits = false;
    };
    struct Node {
        std::uint32_t here = 0;
        double latest = 0;
        std::uint64_t meeting = 0;
        std::uint32_t round = 0;
        bool has_sent = false;
        osc::sync::FenceSummary summary;
    };

    // A barrier of the node: true when all are there, `latest` is then when they leave.
    bool meets(Node& node, Process process) {
        node.latest = node.here == 0 ? engine_.time(process) : std::max(node.latest, engine_.time(process));
        const std::uint32_t local = job_.local_size(job_.node_of(process));
        if (++node.here < local) return false;
        node.here = 0;
        node.latest += engine_.machine().meeting(local);
        return true;
    }

    // As net::RemoteWindow::barrier does it.
    void go_round(std::uint32_t number) {
        Node& node = nodes_[number];
        const Process leader = job_.leader(number);
        const osc::sync::Dissemination meeting{number, job_.nodes()};
        for (;; ++node.round, node.has_sent = false) {
            const std::uint32_t distance = std::uint32_t{1} << node.round;
            if (distance >= job_.nodes()) break;
            if (!std::exchange(node.has_sent, true)) tell(node, meeting, leader, distance);
            if (!states_[leader].arrivals.take(node.meeting, node.round, node.summary)) return;
        }
        const std::map<std::uint32_t, std::uint32_t> closes = std::exchange(node.summary.closes, {});
        for (const auto& [process, count] : closes)
            states_[process].expected += count;
        leave(number, engine_.time(leader) + engine_.machine().meeting(job_.local_size(number)), !closes.empty());
    }

    void tell(Node& node, const osc::sync::Dissemination& meeting, Process leader, std::uint32_t distance) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> steps;
        meeting.take(
            node.summary.closes, distance, [&](std::uint32_t process) { return job_.node_of(process); },
            [&](std::uint32_t process, std::uint32_t closes) { steps.emplace_back(process, closes); });
        const bool closes = put_ && node.round == 0;
        const std::size_t bytes = kStepBytes + steps.size() * kCountBytes + (closes ? kCloseBytes : 0);
        const std::uint64_t list = steps.empty() ? 0 : keep(std::move(steps));
        const auto kind = closes ? kStepAndClose : kStep;
        const auto round = static_cast<std::uint16_t>(node.round);
        engine_.send(
            {job_.leader(meeting.next(distance)), leader, By::Libosc, kind, round, 0, list << 32 | node.meeting},
            bytes);
    }

    std::uint64_t keep(std::vector<std::pair<std::uint32_t, std::uint32_t>>&& steps) {
        if (free_lists_.empty()) {
            count_lists_.push_back(std::move(steps));
            return count_lists_.size();
        }
        const std::uint32_t place = free_lists_.back();
        free_lists_.pop_back();
        count_lists_[place] = std::move(steps);
        return std::uint64_t{place} + 1;
    }

    void leave(std::uint32_t number, double time, bool closes) {
        const Process first = job_.leader(number);
        const Process end = first + job_.local_size(number);
        for (Process process = first; process < end; ++process) {
            engine_.until(process, time);
            if (!closes)
                finish(process);
            else
                states_[process].awaits = true;
        }
        for (Process process = first; closes && process < end; ++process)
            look(process);
    }

    // Whether all have closed to it that will; the node meets once more when that is so for all.
    void look(Process process) {
        State& state = states_[process];
        if (!state.awaits || state.arrivals.closes() < state.expected) return;
        state.awaits = false;
        Node& node = nodes_[job_.node_of(process)];
        if (!meets(node, process)) return;
        const double time = node.latest;
        const Process first = job_.leader(job_.node_of(process));
        for (Process peer = first; peer < first + job_.local_size(job_.node_of(process)); ++peer) {
            engine_.until(peer, time);
            finish(peer);
        }
    }

    void finish(Process process) {
        State& state = states_[process];
        state.arrivals.open(++state.fences);
        std::erase_if(state.early, [&](std::uint64_t fence) {
            if (fence > state.fences) return false;
            state.arrivals.closed();
            return true;
        });
        if (state.fences < job_.repeats) engine_.send({process, process, By::Itself, kEnter, 0, 0, 0});
    }

    // Executes a close message that waited for `fence`. The origin does not wait for the reply.
    void close(const Message& message, std::uint64_t fence) {
        const Process process = message.to;
        State& state = states_[process];
        engine_.send({message.from, process, By::Libosc, kReply, 0, 0, 0}, kReplyBytes);
        if (!state.arrivals.is_open(fence)) return state.early.push_back(fence);
        state.arrivals.closed();
        look(process);
    }

    Engine& engine_;
    const Job& job_;
    const bool put_;
    std::vector<State> states_;
    std::vector<Node> nodes_;
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> count_lists_;
    std::vector<std::uint32_t> free_lists_;
};

}  // namespace

Outcome fences(const Machine& machine, const Job& job, bool put) {
    Engine engine(machine, job.processes);
    Fences protocol(engine, job, put);
    engine.run(protocol);
    return {engine.end() / job.repeats,
            static_cast<double>(engine.sent()) / (static_cast<double>(job.processes) * job.repeats)};
}

}  // namespace simulation
