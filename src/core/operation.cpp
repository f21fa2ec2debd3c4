// Operations on a window: they open their targets, and go by the targets' ways, now or when the queue is performed.
// Build: -O3
#include <utility>

#include "core/epoch.h"
#include "core/targets.h"

namespace osc {
namespace {

// How the bytes of an operation travel, for statistics and the timeline.
void note_path(const reach::Outcome& outcome) {
    stats::t_path = outcome.path;
}

}  // namespace

reach::Outcome Core::perform(Target& target, const op::Call& call, const reach::Extras& extras) {
    Update what{};
    if (const Fault fault = op::check(call, what); fault != Fault::None) return {.fault = fault};
    if (checks && is_local(target.rank) && call.kind != op::OpKind::Get && what.op != Op::NoOp)
        target.control().note_update(me);
    const reach::Outcome outcome = way_of(target, call.kind).perform(target, call, what, extras);
    if (outcome.in_flight && incomplete.load(std::memory_order_acquire) != 0) epoch::mark_incomplete(*this, target);
    return outcome;
}

Fault Core::execute(Target& target, const op::Call& call, const reach::Extras& extras) {
    const reach::Outcome outcome = perform(target, call, extras);
    note_path(outcome);
    return outcome.fault;
}

Fault Core::defer(Target& target, op::Deferral&& operation) {
    Update what{};
    if (const Fault fault = op::check(operation.call, what); fault != Fault::None) return fault;
    const reach::Outcome outcome = way_of(target, operation.call.kind).admit(target, operation.call, what);
    note_path(outcome);
    if (outcome.fault != Fault::None || !outcome.served) return outcome.fault;
    const std::uint32_t rank = target.rank;
    return deferred.add(rank, std::move(operation)) < op::Queue::kMost ? Fault::None
                                                                       : strategy::perform_queued(*this, rank);
}

// A put or get that was counted as a message when it was queued may go directly after all.
Fault Core::perform_deferred(std::uint32_t rank) {
    base::FirstFault first;
    deferred.empty(rank, [&](const op::Deferral& operation) {
        const op::Call& call = operation.call;
        const reach::Outcome outcome = perform(target(rank), call, {});
        first.note(outcome.fault);
        if (outcome.path != stats::DataPath::Direct || stats == nullptr || outcome.fault != Fault::None) return;
        if (call.kind != op::OpKind::Put && call.kind != op::OpKind::Get) return;
        stats->reroute(call.kind == op::OpKind::Put ? stats::Kind::Put : stats::Kind::Get, stats::DataPath::Message,
                       stats::DataPath::Direct, call.target.count * call.target.layout->size());
    });
    return first.take();
}

// Strategies do not change.
bool Core::Batching::operator()(bool mapped) {
    if (core.threaded) return false;
    if (access != core.epoch.access) {
        access = core.epoch.access;
        const strategy::Strategy* const strategy = core.strategies.of_epoch(core);
        allowed = core.ledger == nullptr && strategy != nullptr && strategy->allows_batches();
    }
    if (!allowed || (mapped && access == Access::Lock)) return false;
    return core.in_run = true;
}

namespace epoch {

using base::fail;

Fault open_target(Core& core, Target& target, bool* deferred) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    epoch.make_room();
    if (target.is_in_run()) core.reach(target).leave_run(target);
    switch (epoch.access) {
        case Access::None:
            return fail(Fault::Sync, "no access epoch is open; open one with fence, start, lock or lock_all first");
        case Access::Fence:
            epoch.access = Access::FenceUsed;
            break;
        case Access::Lock:
            if (target.held_lock == HeldLock::None)
                return fail(Fault::Sync, "rank %u is not locked; lock it before the operation", target.rank);
            if (!strategy::is_deferred(target.held_lock) && !core.deferred.has(target.rank)) return Fault::None;
            break;
        case Access::LockAll:
            if (target.held_lock != HeldLock::None && !core.deferred.has(target.rank)) return Fault::None;
            break;
        case Access::Start:
            if (!target.started)
                return fail(Fault::Sync, "rank %u is not in the group given to MPI_Win_start", target.rank);
            break;
        case Access::FenceUsed:
            break;
    }
    if (deferred != nullptr &&
        core.strategies.of_epoch(core)->on_operation(core, target) == strategy::Decision::Queue) {
        if (epoch.access != Access::Lock) epoch.note(target);
        *deferred = true;
        return Fault::None;
    }
    return strategy::make_open(core, guard, target);
}

bool opens(Core& core, std::uint32_t rank) {
    if (rank >= core.size) return false;
    Target& target = core.target(rank);
    if (target.full_limit == 0 || target.fast_limit.load(std::memory_order_relaxed) != 0) return false;
    bool deferred = false;
    return open_target(core, target, &deferred) == Fault::None && !deferred;
}

namespace {

bool is_open(Core& core, const Target& target) {
    const StateGuard guard(core);
    return is_prepared(core, target);
}

}  // namespace

bool try_simple(Core& core, int rank, const op::Simple& what) {
    if (static_cast<std::uint32_t>(rank) >= core.size) return false;
    Target& target = core.targets[rank];
    if (target.block.load(std::memory_order_acquire) == nullptr) return false;
    if (core.provider_atomics && !what.is_transfer()) return false;
    const bool prepared = target.fast_limit.load(std::memory_order_relaxed) != 0 || is_open(core, target);
    const reach::Outcome outcome = core.reach(target).simple(target, what, prepared);
    if (!outcome.served) return false;
    note_path(outcome);
    // With other threads a flush may be about to make this target flushable.
    if (outcome.in_flight && (core.threaded || core.flushable.load(std::memory_order_relaxed) != 0 ||
                              target.held_lock == HeldLock::Exclusive))
        mark_incomplete(core, target);
    return true;
}

void end_run(Core& core) {
    core.in_run = false;
    for (reach::Reach* const way : core.reaches)
        if (way != nullptr) way->end_run();
}

}  // namespace epoch
}  // namespace osc
