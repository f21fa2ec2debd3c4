// Operations outside the fast paths: they open their target, and are executed by the way to its memory or queued.
// Build: -O3
#include <utility>

#include "core/epoch.h"
#include "core/simple.h"
#include "core/targets.h"
#include "net/network_stack.h"
#include "net/origin/provider_atomics.h"

namespace osc {

// The rules that do not depend on the target, and that the operation meets others at the same element by one mechanism.
Fault Core::check_call(const op::Call& call, Update& what) const {
    const Fault fault = op::check(call, what);
    if (fault != Fault::None || only_atomics == nullptr || call.kind == op::OpKind::Put ||
        call.kind == op::OpKind::Get || only_atomics->mechanism(what.basic, what.op, false) != net::Mechanism::Refused)
        return fault;
    return base::fail(
        Fault::Op,
        "%s has no %s on %s, and the window's other accumulates go by its atomics; if only this operation "
        "and MPI_NO_OP meet at an element, create the window with the info key "
        "accumulate_ops=same_op_no_op; else with osc_atomics=messages",
        net::NetworkStack::mine().endpoint().provider(), op::name(what.op), op::name(what.basic));
}

Fault Core::execute(Target& target, const op::Call& call, const reach::Extras& extras) {
    Update what{};
    if (const Fault fault = check_call(call, what); fault != Fault::None) return fault;
    const bool accumulates = call.kind != op::OpKind::Put && call.kind != op::OpKind::Get;
    if (checks && is_local(target.rank) && call.kind != op::OpKind::Get && what.op != Op::NoOp)
        target.control().note_update(me);
    reach::Reach& way = accumulates && accumulate_way != nullptr ? *accumulate_way : reach(target);
    const reach::Outcome outcome = way.perform(target, call, what, extras);
    if (outcome.in_flight && incomplete.load(std::memory_order_acquire) != 0) epoch::mark_incomplete(*this, target);
    return outcome.fault;
}

Fault Core::defer(Target& target, op::Deferral&& operation) {
    Update what{};
    if (const Fault fault = check_call(operation.call, what); fault != Fault::None) return fault;
    bool nothing = false;
    const Fault fault = reach(target).admit(target, operation.call, nothing);
    if (fault != Fault::None || nothing) return fault;
    const std::uint32_t rank = target.rank;
    return deferred.add(rank, std::move(operation)) < op::Queue::kMost ? Fault::None
                                                                       : strategy::perform_queued(*this, rank);
}

// A put or get that was counted as a message when it was queued may go directly after all.
void Core::recount(const Target& target, const op::Call& call) {
    const bool is_put = call.kind == op::OpKind::Put;
    if (stats == nullptr || !is_remote(target.way) || (!is_put && call.kind != op::OpKind::Get)) return;
    if (stats::t_path != stats::DataPath::Direct) return;
    const stats::Kind kind = is_put ? stats::Kind::Put : stats::Kind::Get;
    stats->reroute(kind, stats::DataPath::Message, stats::DataPath::Direct,
                   call.target.count * call.target.layout->size());
}

Fault Core::perform_deferred(std::uint32_t rank) {
    base::FirstFault first;
    deferred.empty(rank, [&](const op::Deferral& operation) {
        if (const Fault fault = execute(target(rank), operation.call); fault != Fault::None)
            first.note(fault);
        else
            recount(target(rank), operation.call);
    });
    return first.take();
}

}  // namespace osc

namespace osc::epoch {

using base::fail;

Fault open_target(Core& core, Target& target, bool* deferred) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (target.is_in_run()) leave_batch(core, target);
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

}  // namespace osc::epoch
