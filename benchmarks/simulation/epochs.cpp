// Post-start-complete-wait, and lock_all: a few messages to each neighbour, whatever the number of processes.
#include <vector>

#include "protocols.h"

namespace simulation {
namespace {

enum Kind : std::uint8_t { kPost, kComplete, kReply, kLocked, kNext };
constexpr std::size_t kPutBytes = 40 + 3 * 16 + 8;  // frame, records, data

Outcome outcome(const Engine& engine, const Job& job) {
    return {engine.end() / job.repeats,
            static_cast<double>(engine.sent()) / (static_cast<double>(job.processes) * job.repeats)};
}

// Targets are processes of the next nodes, origins processes of the previous nodes. The reply to a message with a put
// and the complete is a message of its own; the origin does not wait for it.
class Pscw final : public Protocol {
  public:
    Pscw(Engine& engine, const Job& job) : engine_(engine), job_(job), states_(job.processes) {}

    void begin(Process process) override {
        for (std::uint32_t i = 1; i <= job_.neighbours; ++i)
            engine_.send({job_.across(process, -std::int64_t{i}), process, By::Libosc, kPost, 0, 0, 0}, 56);
        go_on(process);
    }

    void arrived(const Message& message) override {
        State& state = states_[message.to];
        switch (message.kind) {
            case kPost:
                ++state.posts;
                return go_on(message.to);
            case kComplete:
                ++state.completes;
                engine_.send({message.from, message.to, By::Libosc, kReply, 0, 0, 0}, 48);
                return go_on(message.to);
            case kNext:
                return begin(message.to);
            default:
                return;
        }
    }

  private:
    struct State {
        std::uint32_t epoch = 0;
        bool completed = false;
        std::uint64_t posts = 0;
        std::uint64_t completes = 0;
    };

    void go_on(Process process) {
        State& state = states_[process];
        if (state.epoch == job_.repeats) return;
        const std::uint64_t wanted = std::uint64_t{job_.neighbours} * (state.epoch + 1);
        if (!state.completed && state.posts >= wanted) {
            state.completed = true;
            for (std::uint32_t i = 1; i <= job_.neighbours; ++i)
                engine_.send({job_.across(process, i), process, By::Libosc, kComplete, 0, 0, 0}, kPutBytes);
        }
        if (!state.completed || state.completes < wanted) return;
        state.completed = false;
        if (++state.epoch < job_.repeats) engine_.send({process, process, By::Itself, kNext, 0, 0, 0});
    }

    Engine& engine_;
    const Job& job_;
    std::vector<State> states_;
};

// Lock, put and unlock are one message to each neighbour, and one reply, for all of which unlock_all waits together.
class LockAll final : public Protocol {
  public:
    LockAll(Engine& engine, const Job& job) : engine_(engine), job_(job), states_(job.processes) {}

    void begin(Process process) override {
        states_[process].awaited = job_.neighbours;
        for (std::uint32_t i = 1; i <= job_.neighbours; ++i)
            engine_.send({job_.across(process, i), process, By::Libosc, kLocked, 0, 0, 0}, kPutBytes);
    }

    void arrived(const Message& message) override {
        if (message.kind == kLocked) return engine_.send({message.from, message.to, By::Libosc, kReply, 0, 0, 0}, 48);
        State& state = states_[message.to];
        if (--state.awaited == 0 && ++state.epoch < job_.repeats) begin(message.to);
    }

  private:
    struct State {
        std::uint32_t epoch = 0;
        std::uint32_t awaited = 0;
    };
    Engine& engine_;
    const Job& job_;
    std::vector<State> states_;
};

}  // namespace

Outcome pscw(const Machine& machine, const Job& job) {
    Engine engine(machine, job.processes);
    Pscw protocol(engine, job);
    engine.run(protocol);
    return outcome(engine, job);
}

Outcome lock_all(const Machine& machine, const Job& job) {
    Engine engine(machine, job.processes);
    LockAll protocol(engine, job);
    engine.run(protocol);
    return outcome(engine, job);
}

}  // namespace simulation
