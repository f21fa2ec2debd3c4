// Chooses between process_vm_* and the agent, for each operation.
// Build: -O3
#include "reach/private.h"

#include "stats/counters.h"

namespace osc::reach {

Private::Carrier::Carrier(Private& way, Target& target, std::uint64_t base) {
    if (const pid_t pid = way.pid_of(target.rank); pid != 0) {
        stats::t_path = stats::DataPath::ProcessVm;
        cross_.emplace(pid, base, way.stripes(target));
        return;
    }
    stats::t_path = stats::DataPath::Agent;
    waits_.emplace(shm::WaitKind::Operations, way.window_, way.me_, target.rank);
    // A fault of an earlier operation is reported first.
    if (way.pending_.incomplete.load(std::memory_order_acquire) != 0) fault_ = way.await_agents(net::kNoRank);
    net::AgentRoute* route = nullptr;
    if (fault_ == Fault::None) fault_ = way.connect(target, route);
    if (fault_ == Fault::None)
        agent_.emplace(net::Outbox::mine(), *route, target.control().served, base, target.rank, &way.pending_);
}

Outcome Private::execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) {
    Carrier carrier(*this, target, target.control().base);
    if (carrier.fault() != Fault::None) return {carrier.fault()};
    return carrier.outcome(op::execute(call, what, start, carrier.transport()));
}

void Private::note_path(const Target& target) const {
    stats::t_path = pid_of(target.rank) != 0 ? stats::DataPath::ProcessVm : stats::DataPath::Agent;
}

bool Private::find(const Target& target, std::int64_t disp, std::uint64_t bytes, Place& place) const {
    const shm::ControlBlock& block = target.control();
    std::int64_t at = 0;
    if (disp < 0 || __builtin_mul_overflow(disp, static_cast<std::int64_t>(target.unit), &at)) return false;
    place.offset = static_cast<std::uint64_t>(at);
    if (bytes > block.size || place.offset > block.size - bytes) return false;
    place.address = block.base + place.offset;
    place.pid = pid_of(target.rank);
    return place.pid != 0;
}

Fault Private::connect(const Target& target, net::AgentRoute*& route) {
    const std::uint64_t mailbox = target.control().mailbox;
    // Memory of a process that has died cannot be mapped: report the death then.
    const auto death_or = [&](Fault fault) {
        if (fault == Fault::None || liveness_.alive(target.rank)) return fault;
        return base::fail(Fault::Dead, "rank %u died, and its memory with it", target.rank);
    };
    if (mailbox == 0)
        return death_or(
            base::fail(Fault::Other,
                       "the memory of rank %u is not mapped here, process_vm_readv does not reach it, and no agent "
                       "was started for the window",
                       target.rank));
    return death_or(net::Outbox::mine().connect(node_.arena(target.rank), mailbox, route));
}

}  // namespace osc::reach
