// Chooses between process_vm_* and the agent, for each operation.
// Build: -O3
#include "reach/private.h"

namespace osc::reach {

bool Private::is_scattered(const op::Call& call) {
    // The system takes 150 to 350 ns for each piece; the owner's agent takes some 10 us to answer.
    constexpr std::size_t kManyPieces = 64;
    constexpr std::size_t kLongPiece = 1024;  // bytes
    // A get reads the gaps, in as much time for this span as the agent takes.
    constexpr std::size_t kLongSpan = std::size_t{256} << 10;
    constexpr std::size_t kSparse = 8;  // gaps per data
    const op::Layout& layout = *call.target.layout;
    const std::size_t pieces = layout.data().blocks() * call.target.count;
    const std::size_t bytes = layout.size() * call.target.count;
    op::Bounds bounds;
    if (pieces < kManyPieces || bytes / pieces > kLongPiece || layout.data().one_piece(call.target.count)) return false;
    if (call.kind != op::OpKind::Get) return true;
    if (!layout.bounds(call.target.count, bounds)) return false;
    const auto span = static_cast<std::size_t>(bounds.hi - bounds.lo);
    return span >= kLongSpan && span / kSparse >= bytes;
}

Private::Carrier::Carrier(Private& way, Target& target, std::uint64_t base, const op::Call* scattered)
    : path_(stats::DataPath::ProcessVm) {
    const bool packs = scattered != nullptr && target.rank != way.origin_.me && target.control().mailbox != 0;
    const pid_t pid = way.pid_of(target.rank);
    if (pid != 0 && !packs) {
        cross_.emplace(pid, base, way.origin_.stripes(target.control()));
        return;
    }
    path_ = stats::DataPath::Agent;
    waits_.emplace(shm::WaitKind::Operations, way.window_, way.origin_.me, target.rank);
    // A fault of an earlier operation is reported first.
    if (way.pending_.incomplete.load(std::memory_order_acquire) != 0) fault_ = way.await_agents(net::kNoRank);
    net::AgentRoute* route = nullptr;
    if (fault_ == Fault::None) fault_ = way.connect(target, route);
    way.asks_agents_.store(true, std::memory_order_relaxed);
    // An accumulate that goes by process_vm_* next must find this one done.
    const bool awaits = pid != 0 && scattered->kind != op::OpKind::Put;
    if (fault_ == Fault::None)
        agent_.emplace(net::Outbox::mine(), *route, target.control().served, base, target.rank,
                       awaits ? nullptr : &way.pending_);
}

Outcome Private::execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) {
    Carrier carrier(*this, target, target.control().base, is_scattered(call) ? &call : nullptr);
    if (carrier.fault() != Fault::None) return carrier.outcome(carrier.fault());
    return carrier.outcome(op::execute(call, what, start, carrier.transport()));
}

Outcome Private::simple_outside(Target& target, const op::Simple& what, bool prepared, std::uint64_t first,
                                std::uint64_t end) {
    const shm::ControlBlock& block = target.control();
    std::int64_t at = 0;
    if (what.disp < 0 || __builtin_mul_overflow(what.disp, static_cast<std::int64_t>(target.unit), &at))
        return kNotServed;
    const auto offset = static_cast<std::uint64_t>(at);
    if (what.bytes > block.size || offset > block.size - what.bytes) return kNotServed;
    if (offset < end && offset + what.bytes > first) return kNotServed;
    return join(target, what, prepared, block.base + offset, offset);
}

Outcome Private::join(Target& target, const op::Simple& what, bool prepared, std::uint64_t address,
                      std::uint64_t offset) {
    const bool is_put = what.kind == op::OpKind::Put;
    const bool fits = what.is_transfer() ? what.bytes <= (is_put ? cma::Collected::kMostPut : cma::Collected::kMostGet)
                                         : is_batchable(what);
    if (!fits || !prepared) return kNotServed;
    const pid_t pid = pid_of(target.rank);
    if (pid == 0) return kNotServed;
    if (!run_.goes_on() && !run_.look(false)) return kNotServed;
    if (!run_.is_long()) target.unmapped_run = false;
    if (!run_.lengthen()) return kNotServed;
    target.unmapped_run = true;
    run_.batch()
        .unmapped(target.local_index, pid, address - offset, origin_.stripes(target.control()))
        .add(what, static_cast<std::int64_t>(offset));
    return {.in_flight = true, .path = stats::DataPath::ProcessVm};
}

Fault Private::connect(const Target& target, net::AgentRoute*& route) {
    const std::uint64_t mailbox = target.control().mailbox;
    // Memory of a process that has died cannot be mapped: report the death then.
    const auto death_or = [&](Fault fault) {
        if (fault == Fault::None || origin_.liveness.alive(target.rank)) return fault;
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
