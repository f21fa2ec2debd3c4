// MPI_Win_fence. Immediate: operations are done as they are called, and awaited; then all processes meet. Deferred, on
// a node: they are put off; the fence behind them meets, has them done, and meets again if there were any. Deferred,
// between nodes: they are sent, but nobody waits for replies: each process tells its targets, behind its operations,
// that they are over; the processes tell each other how many will tell whom; and each waits until it has been told so
// often. A fence with MPI_MODE_NOPRECEDE awaits nobody, but for immediate ones between nodes: operations behind it wait
// until their target has made it. One without it is a barrier also if no fence was before it, because operations under
// locks may have been (12.5.1). docs/NETWORK.md says why that is right, tests/model/fence.pml shows it.
#include <utility>

#include "config/options.h"
#include "diag/inject.h"
#include "diag/log.h"
#include "epoch/targets.h"

namespace osc::epoch {
namespace {

using diag::fail;

// Before all meet: what was done on targets of this node is awaited, other nodes' targets are told that all is over.
Fault end_operations(Core& core, const std::vector<std::uint32_t>& targets) {
    Fault first = Fault::None;
    const bool tells = core.slot.rank_at(0) == core.me;
    for (const std::uint32_t target : targets) {
        const Fault fault = core.here(target) ? core.settle(target) : core.far_sync->close(target, tells);
        if (fault != Fault::None)
            first = fault;
        else if (!core.here(target))
            core.slot.fence_news().add(target, core.size);
    }
    return first;
}

// After that: what was put off is done.
Fault do_late(Core& core, const std::vector<std::uint32_t>& targets) {
    Fault first = Fault::None;
    for (const std::uint32_t target : targets) {
        if (!core.has_put_off(target)) continue;
        const Fault done = core.do_put_off(target);
        const Fault ended = core.settle(target);
        if (done != Fault::None || ended != Fault::None) first = done != Fault::None ? done : ended;
    }
    return first;
}

// Until the operations of others on this process and its neighbours are over. Neighbours load and store as soon as they
// are through, so all of the node wait for each other if anything is awaited.
bool await_others(Core& core, bool put_off) {
    const bool closes = core.far_sync != nullptr && core.slot.fence_news().any_closes;
    if (closes && !core.far_sync->await_closes(core.mine().closes, core)) {
        core.slot.header().barrier.give_up();
        return false;
    }
    return (!closes && !put_off) || core.meet_here();
}

bool meet_immediately(Core& core, Fault& late) {
    late = core.settle();
    return core.meet();
}

bool meet_deferred(Core& core, const std::vector<std::uint32_t>& targets, Fault& late) {
    const std::uint64_t fence = core.epoch.fences;
    std::atomic<std::uint64_t>& put_off = core.slot.header().put_off[fence % 2];
    late = end_operations(core, targets);
    if (!core.put_off_targets().empty()) put_off.store(fence, std::memory_order_relaxed);
    if (!core.meet()) return false;
    if (const Fault fault = do_late(core, targets); fault != Fault::None) late = fault;
    if (!await_others(core, put_off.load(std::memory_order_relaxed) == fence)) return false;
    if (const Fault fault = core.settle_local(Core::kEveryTarget); late == Fault::None) late = fault;
    return true;
}

// What this process wants the next epochs to be, by what it has done in this one.
void want_strategy(Core& core, bool fences_epoch) {
    const sync::Traffic traffic = core.far_sync->take_traffic();
    if (!fences_epoch || core.fence_mode != Mode::Auto || !traffic.any()) return;
    const sync::Predicted predicted = sync::predict(core.costs, traffic);
    const std::uint32_t wants = sync::wanted(predicted, traffic);
    core.slot.fence_news().wants.fetch_or(wants, std::memory_order_relaxed);
    if (!config::verbose("strategy") || (wants == sync::kImmediate) == core.epoch.immediate) return;
    diag::say(
        "fence %llu of a window of %u processes: %llu bytes in messages and %llu directly would take %.1f us "
        "immediate, %.1f us deferred",
        static_cast<unsigned long long>(core.epoch.fences + 1), core.size,
        static_cast<unsigned long long>(traffic.gathered), static_cast<unsigned long long>(traffic.direct),
        predicted.immediate / 1e3, predicted.deferred / 1e3);
}

// All processes know it alike, by the barrier that they have passed. Epochs without operations, as before an opening
// fence, change nothing.
void note_strategy(Core& core) {
    const std::uint32_t wanted = core.slot.fence_news().wanted;
    if (wanted == sync::kNothing || core.fence_mode != Mode::Auto) return;
    const bool immediate = (wanted & sync::kImmediate) != 0;
    if (std::exchange(core.epoch.immediate, immediate) == immediate || core.me != 0) return;
    if (config::verbose("strategy"))
        diag::say("fence %llu of a window of %u processes: fences are %s from now on",
                  static_cast<unsigned long long>(core.epoch.fences), core.size, immediate ? "immediate" : "deferred");
}

}  // namespace

Fault fence(Core& core, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::None && epoch.access != Access::Fence && epoch.access != Access::FenceUsed)
        return fail(Fault::Sync, "a start, lock or lock_all epoch is open; end it before MPI_Win_fence");
    if (epoch.posted) return fail(Fault::Sync, "an exposure epoch is open; call MPI_Win_wait before MPI_Win_fence");
    if (epoch.fence_failed) return fail(Fault::Dead, "a process died in an earlier fence of this window");
    const bool far = core.far_sync != nullptr;
    const bool precedes = (asserts & kNoPrecede) == 0;
    const bool succeeds = (asserts & kNoSucceed) == 0;
    // All processes give the same two asserts (12.5.5), so all decide alike.
    const bool deferred =
        core.fence_mode == Mode::Deferred || (core.fence_mode == Mode::Auto && far && !epoch.immediate);
    std::vector<std::uint32_t> targets;
    if (deferred) targets = epoch.touched;
    if (deferred && !precedes)
        for (const std::uint32_t target : targets) {  // against the assert
            static_cast<void>(guard.unlocked([&] { return do_now(core, target); }));
            core.discard_put_off(target);
        }
    if (far) want_strategy(core, precedes && epoch.access == Access::FenceUsed);
    close_touched(core);
    epoch.access = succeeds ? Access::Fence : Access::None;
    ++epoch.fences;
    // Nothing before and nothing after: nothing to order.
    const bool nothing =
        (!precedes && !succeeds) || OSC_FAULT(fence_unsynchronised) || (OSC_FAULT(opening_fence_skipped) && !precedes);
    const bool alone = !precedes && !nothing && (deferred || !far);
    // Where replies are not awaited before all meet, those to a neighbour's gets may still come when it has been met.
    epoch.apart = alone || (!nothing && deferred && far);
    // Loads and stores through the pointers that all have await nobody, so there the neighbours meet.
    const bool meets_here = alone && core.shared_flavour;
    Fault late = Fault::None;
    const bool met = guard.unlocked([&] {
        // A fault of an operation is told, but the fence is gone through all the same: the others wait in it.
        if (nothing || alone) {
            // Of epochs of other kinds there may be replies under way, which nobody needs now.
            late = deferred && targets.empty() ? core.settle_local(Core::kEveryTarget) : core.settle();
            return !meets_here || core.meet_here();
        }
        return deferred ? meet_deferred(core, targets, late) : meet_immediately(core, late);
    });
    if (far && !nothing && (precedes || !deferred)) note_strategy(core);
    // After a death there will be no other: nobody's operations wait for it.
    core.let_in(met ? epoch.fences : ~std::uint64_t{0}, met && deferred && !nothing);
    if (met) return late;
    // The epoch is over, with what it has not done.
    epoch.fence_failed = true;
    for (const std::uint32_t target : core.put_off_targets())
        core.discard_put_off(target);
    if (far) core.far_sync->forget_results();
    const int dead = core.any_dead();
    return dead >= 0 ? fail(Fault::Dead, "rank %d died; the fence can never complete", dead)
                     : fail(Fault::Dead, "a process died or does not answer; the fence can never complete");
}

}  // namespace osc::epoch
