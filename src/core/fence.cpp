// MPI_Win_fence: legality, and the calls of the window's fence strategy. A fence without MPI_MODE_NOPRECEDE is a
// barrier also if it is the first one, because operations under locks may precede it (12.5.1).
#include "core/epoch.h"

namespace osc::epoch {

using base::fail;

Fault fence(Core& core, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::None && epoch.access != Access::Fence && epoch.access != Access::FenceUsed)
        return fail(Fault::Sync, "a start, lock or lock_all epoch is open; end it before MPI_Win_fence");
    if (epoch.posted) return fail(Fault::Sync, "an exposure epoch is open; call MPI_Win_wait before MPI_Win_fence");
    if (epoch.fence_failed)
        return fail(Fault::Dead, "a process died, or its connection was lost, in an earlier fence of this window");
    // All processes give the same two asserts (12.5.5) and have the same strategy, so all decide alike.
    const strategy::FenceCall call{(asserts & kNoPrecede) == 0, (asserts & kNoSucceed) == 0,
                                   epoch.access == Access::FenceUsed, epoch.touched};
    strategy::FenceStrategy& fences = *core.strategies.fence;
    fences.prepare(core, guard, call);
    close_touched(core);
    epoch.access = call.succeeds ? Access::Fence : Access::None;
    ++epoch.fences;
    const bool nothing = call.is_empty();
    epoch.needs_target_fence = !nothing && fences.runs_ahead(core, call);
    base::FirstFault first;
    core.came_last = false;
    // The fence goes on after a fault of an operation, because other processes wait in it.
    const bool met = guard.unlocked([&] {
        Fault late = Fault::None;
        const bool all = nothing || fences.synchronise(core, call, late);
        first.note(nothing ? core.complete_ops() : late);
        return all;
    });
    if (core.stats != nullptr && core.came_last && core.remote_sync == nullptr)
        core.stats->other(stats::Other::FenceLast);
    const bool early = !nothing && fences.opens_early(core);
    if (!nothing) fences.conclude(core, call);
    // After a death no further fence completes, so no operation may wait for one.
    core.announce_fence(met ? epoch.fences : ~std::uint64_t{0}, met && early);
    if (met) return first.take();
    // The epoch has ended; its queued operations are dropped.
    epoch.fence_failed = true;
    for (const std::uint32_t rank : core.deferred.targets())
        core.deferred.discard(rank);
    if (core.remote_sync != nullptr) core.remote_sync->forget_results();
    const int dead = core.members.dead_in_collective();
    return dead >= 0 ? fail(Fault::Dead, "rank %d died, or its connection is lost; the fence can never complete", dead)
                     : fail(Fault::Dead, "a process died, or its connection is lost; the fence can never complete");
}

}  // namespace osc::epoch
