// One exclusive lock that all processes request. The target runs the library's own code: net::TargetService executes,
// queues and grants requests on the lock word and queue of a window. Only the network is simulated.
#include <cstring>
#include <vector>

#include "net/target/target_service.h"
#include "protocols.h"
#include "shm/control.h"

namespace simulation {
namespace {

using osc::net::Frame;
using osc::net::FrameKind;
using osc::net::LockAsk;
using osc::net::Opcode;
using osc::net::Record;

constexpr std::uint64_t kWindow = 1;
constexpr Process kOwner = 0;
enum Kind : std::uint8_t { kGet, kPut, kReply };

struct AllLive final : osc::sync::Liveness {
    bool alive(std::uint32_t) override { return true; }
    int dead_in_collective() override { return -1; }
};

// The owner's node, on which it is alone, with a window of one word.
class Owner {
  public:
    Owner(std::uint32_t processes, osc::net::Answers& answers) : hosted(answers) {
        local_ranks_.rank_at = {kOwner};
        const std::size_t bytes = (osc::shm::ControlTable::bytes_for(1, processes) + 63) / 64 * 64;
        memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
        if (memory_ == nullptr) throw std::bad_alloc();
        std::memset(memory_.get(), 0, bytes);
        controls_ = {memory_.get(), osc::shm::ControlTable::stride_for(processes), &local_ranks_};
        osc::shm::construct(controls_, processes);
        osc::net::ExposedWindow serving;
        serving.id = kWindow;
        serving.base = reinterpret_cast<std::byte*>(&word);
        serving.size = sizeof word;
        serving.controls = &controls_;
        serving.rank = kOwner;
        serving.processes = processes;
        serving.liveness = &lives_;
        hosted.add(serving);
    }

    osc::net::TargetService hosted;
    std::uint64_t word = 0;

  private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    osc::shm::LocalRanks local_ranks_;
    std::unique_ptr<std::byte, Free> memory_;
    osc::shm::ControlTable controls_;
    AllLive lives_;
};

// Lock and get, whose reply says that the lock is had; then a put and the unlock, whose reply ends the epoch. The put
// writes what was got plus one, so the word counts the acquisitions.
class Contended final : public Protocol, osc::net::Answers {
  public:
    Contended(Engine& engine, const Job& job)
        : engine_(engine),
          job_(job),
          got_(job.processes),
          left_(job.processes, 2 * job.repeats),
          owner_(job.processes, *this) {}

    void begin(Process process) override {
        if (process != kOwner) ask(process);
    }

    void arrived(const Message& message) override {
        if (message.kind != kReply) return execute(message);
        const Process process = message.to;
        if (--left_[process] == 0) return;
        left_[process] % 2 == 0 ? ask(process) : give_back(process);
    }

    /// Of the word, if nothing was lost.
    bool right() const { return owner_.word == std::uint64_t{job_.processes - 1} * job_.repeats; }

  private:
    void ask(Process process) {
        engine_.send({kOwner, process, By::Libosc, kGet, 0, 0, 0}, sizeof(Frame) + 2 * sizeof(Record));
    }
    void give_back(Process process) {
        engine_.send({kOwner, process, By::Libosc, kPut, 0, 0, 0},
                     sizeof(Frame) + 2 * sizeof(Record) + sizeof owner_.word);
    }

    // The bytes of that message, for the code that executes it.
    void execute(const Message& message) {
        std::vector<std::byte> body;
        const auto append = [&](const void* from, std::size_t bytes) {
            const auto* data = static_cast<const std::byte*>(from);
            body.insert(body.end(), data, data + bytes);
        };
        const auto step = [&](Opcode opcode, std::uint32_t bytes, std::int64_t disp) {
            const Record record{opcode, osc::Basic::None, osc::Op::None, 0, bytes, disp};
            append(&record, sizeof record);
        };
        constexpr auto kExclusive = static_cast<std::int64_t>(LockAsk::Exclusive);
        const std::uint64_t next = got_[message.from] + 1;
        if (message.kind == kGet) {
            step(Opcode::Lock, 0, kExclusive);
            step(Opcode::Get, sizeof next, 0);
        } else {
            step(Opcode::Put, sizeof next, 0);
            append(&next, sizeof next);
            step(Opcode::Unlock, 0, kExclusive);
        }
        Frame frame;
        frame.kind = FrameKind::Request;
        frame.origin = message.from;
        frame.sender = message.from;
        frame.window = kWindow;
        frame.bytes = static_cast<std::uint32_t>(body.size());
        owner_.hosted.request(frame, body.data());
        if (owner_.hosted.waits()) owner_.hosted.resume();
    }

    void dropped() override {}  // no notices are sent
    void answer(std::uint64_t token, std::uint32_t, osc::net::Status, const std::byte* data,
                std::size_t bytes) override {
        const auto origin = static_cast<Process>(token);
        if (bytes == sizeof got_[origin]) std::memcpy(&got_[origin], data, bytes);
        engine_.send({origin, kOwner, By::Libosc, kReply, 0, 0, 0}, sizeof(Frame) + 8 + bytes);
    }

    Engine& engine_;
    const Job& job_;
    std::vector<std::uint64_t> got_;
    std::vector<std::uint32_t> left_;  // replies that each still awaits
    Owner owner_;
};

}  // namespace

Outcome contended_lock(const Machine& machine, const Job& job) {
    Engine engine(machine, job.processes);
    Contended protocol(engine, job);
    engine.run(protocol);
    const double acquisitions = static_cast<double>(job.processes - 1) * job.repeats;
    if (!protocol.right()) return {};
    return {engine.end() / acquisitions, static_cast<double>(engine.sent()) / acquisitions};
}

}  // namespace simulation
