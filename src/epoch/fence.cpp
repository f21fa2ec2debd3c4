// MPI_Win_fence: what is legal, and the window's strategy called in its order. A fence without MPI_MODE_NOPRECEDE is a
// barrier also if no fence was before it, because operations under locks may have been (12.5.1).
#include "diag/inject.h"
#include "epoch/epoch.h"

namespace osc::epoch {
namespace {

using diag::fail;

}  // namespace

Fault fence(Core& core, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::None && epoch.access != Access::Fence && epoch.access != Access::FenceUsed)
        return fail(Fault::Sync, "a start, lock or lock_all epoch is open; end it before MPI_Win_fence");
    if (epoch.posted) return fail(Fault::Sync, "an exposure epoch is open; call MPI_Win_wait before MPI_Win_fence");
    if (epoch.fence_failed) return fail(Fault::Dead, "a process died in an earlier fence of this window");
    // All processes give the same two asserts (12.5.5) and have the same strategy, so all decide alike.
    const strategy::FenceCall call{(asserts & kNoPrecede) == 0, (asserts & kNoSucceed) == 0,
                                   epoch.access == Access::FenceUsed, epoch.touched};
    strategy::FenceStrategy& fences = *core.strategies.fence;
    fences.prepare(core, guard, call);
    close_touched(core);
    epoch.access = call.succeeds ? Access::Fence : Access::None;
    ++epoch.fences;
    const bool nothing =
        call.is_empty() || OSC_FAULT(fence_unsynchronised) || (OSC_FAULT(opening_fence_skipped) && !call.precedes);
    epoch.needs_peer_fence = !nothing && fences.runs_ahead(core, call);
    Fault late = Fault::None;
    // A fault of an operation is reported, but the fence is gone through all the same: other processes wait in it.
    const bool met = guard.unlocked([&] {
        if (!nothing) return fences.synchronise(core, call, late);
        late = core.settle();
        return true;
    });
    const bool early = !nothing && fences.opens_early(core);
    if (!nothing) fences.conclude(core, call);
    // After a death there will be no other fence: no operation waits for it.
    core.let_in(met ? epoch.fences : ~std::uint64_t{0}, met && early);
    if (met) return late;
    // The epoch is over, with what it has not done.
    epoch.fence_failed = true;
    for (const std::uint32_t target : core.put_off_targets())
        core.discard_put_off(target);
    if (core.far_sync != nullptr) core.far_sync->forget_results();
    const int dead = core.any_dead();
    return dead >= 0 ? fail(Fault::Dead, "rank %d died; the fence can never complete", dead)
                     : fail(Fault::Dead, "a process died or does not answer; the fence can never complete");
}

}  // namespace osc::epoch
