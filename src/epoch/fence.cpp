// MPI_Win_fence. On a node a barrier. Between nodes immediate (all operations are awaited, then all processes meet) or
// deferred (nobody waits for replies: each tells its targets, behind its operations, that they are over; the processes
// tell each other how many will tell whom; and each waits until it has been told so often). Deferred, a fence with
// MPI_MODE_NOPRECEDE awaits nobody on other nodes: operations that come before this process has made it wait here. One
// without it is a barrier also if no fence was before it, because operations under locks may have been (12.5.1).
// docs/NETWORK.md says why that is right, tests/model/fence.pml shows it.
#include "diag/inject.h"
#include "epoch/epoch.h"

namespace osc::epoch {
namespace {

using diag::fail;

// Awaits the operations on targets of this node; tells the others that all is over.
Fault end_operations(Core& core, const std::vector<std::uint32_t>& targets) {
    Fault first = Fault::None;
    shm::FenceNews& news = core.slot.fence_news();
    const bool tells = core.slot.rank_at(0) == core.me;
    for (const std::uint32_t target : targets) {
        const Fault fault = core.here(target) ? core.settle(target) : core.far_sync->close(target, tells);
        if (fault != Fault::None) first = fault;
        if (!core.here(target)) news.add(target, core.size);
    }
    return first;
}

// Until the operations of other nodes on this process and its neighbours are over.
bool await_others(Core& core) {
    if (!core.slot.fence_news().any_closes) return true;
    if (!core.far_sync->await_closes(core.mine().closes, core)) {
        core.slot.header().barrier.give_up();
        return false;
    }
    // Neighbours load and store as soon as they are through.
    return core.meet_here();
}

bool meet_immediately(Core& core, Fault& late) {
    late = core.settle();
    return core.meet();
}

bool meet_deferred(Core& core, const std::vector<std::uint32_t>& targets, Fault& late) {
    late = end_operations(core, targets);
    if (!core.meet() || !await_others(core)) return false;
    const Fault local = core.settle_local(Core::kEveryTarget);
    if (late == Fault::None) late = local;
    return true;
}

}  // namespace

Fault fence(Core& core, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::None && epoch.access != Access::Fence && epoch.access != Access::FenceUsed)
        return fail(Fault::Sync, "a start, lock or lock_all epoch is open; end it before MPI_Win_fence");
    if (epoch.posted) return fail(Fault::Sync, "an exposure epoch is open; call MPI_Win_wait before MPI_Win_fence");
    const bool far = core.far_sync != nullptr;
    const bool precedes = (asserts & kNoPrecede) == 0;
    const bool succeeds = (asserts & kNoSucceed) == 0;
    // All processes give the same two asserts (12.5.5), so all decide alike.
    const bool deferred =
        far && (core.fence_mode == FenceMode::Deferred || (core.fence_mode == FenceMode::Auto && !epoch.direct));
    const std::vector<std::uint32_t> targets = far ? epoch.touched : std::vector<std::uint32_t>();
    close_touched(core);
    epoch.access = succeeds ? Access::Fence : Access::None;
    ++epoch.fences;
    // Nothing before and nothing after: nothing to order.
    const bool nothing =
        (!precedes && !succeeds) || OSC_FAULT(fence_unsynchronised) || (OSC_FAULT(opening_fence_skipped) && !precedes);
    Fault late = Fault::None;
    const bool met = guard.unlocked([&] {
        if (far && core.far_sync->went_directly()) core.slot.fence_news().direct.store(1, std::memory_order_relaxed);
        // A fault of an operation is told, but the fence is gone through all the same: the others wait in it.
        if (nothing || (deferred && !precedes)) {
            // Of epochs of other kinds there may be replies under way, which nobody needs now.
            late = deferred && targets.empty() ? core.settle_local(Core::kEveryTarget) : core.settle();
            return nothing || core.meet_here();
        }
        return deferred ? meet_deferred(core, targets, late) : meet_immediately(core, late);
    });
    if (far) {
        epoch.all_entered = met && !deferred && !nothing;
        if (!nothing && (precedes || !deferred)) epoch.direct = core.slot.fence_news().any_direct;
        // After a death there will be no other: nobody's operations wait for it.
        core.far_sync->opened(met ? epoch.fences : ~std::uint64_t{0});
    }
    if (met) return late;
    const int dead = core.any_dead();
    return dead >= 0 ? fail(Fault::Dead, "rank %d died; the fence can never complete", dead)
                     : fail(Fault::Dead, "a process died or does not answer; the fence can never complete");
}

}  // namespace osc::epoch
