// Active target with groups: post, start, complete, wait, test.
#include <sched.h>

#include <algorithm>

#include "diag/inject.h"
#include "epoch/epoch.h"
#include "strategy/targets.h"
#include "sync/pscw.h"

namespace osc::epoch {

void close_touched(Core& core) {
    for (const std::uint32_t rank : core.epoch.touched) {
        core.peer(rank).touched = false;
        core.peer(rank).forbid();
    }
    core.epoch.touched.clear();
}

namespace {

using diag::fail;
using strategy::died;
using strategy::wait_for;

}  // namespace

Fault post(Core& core, std::span<const std::uint32_t> origins, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.posted)
        return fail(Fault::Sync, "an exposure epoch is open already; call MPI_Win_wait before the next post");
    if (epoch.access == Access::FenceUsed)
        return fail(Fault::Sync, "a fence epoch is open; end it before MPI_Win_post");
    if (epoch.origin_died)
        return fail(Fault::Dead, "an origin of an earlier exposure epoch died; there can be no other in this window");
    epoch.posted = true;
    epoch.origins.assign(origins.begin(), origins.end());
    if ((asserts & kNoCheck) != 0) return Fault::None;
    Fault fault = Fault::None;
    for (const std::uint32_t origin : origins) {
        if (core.here(origin)) {
            sync::send_post(core.slot, core.me, origin);
        } else if (const Fault far = core.far_sync->post(origin); far != Fault::None) {
            fault = far;
        }
    }
    return fault;
}

Fault start(Core& core, std::span<const std::uint32_t> targets, unsigned asserts, bool may_wait) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::None && epoch.access != Access::Fence)
        return fail(Fault::Sync, "another access epoch is open; end it before MPI_Win_start");
    epoch.access = Access::Start;
    epoch.no_check = (asserts & kNoCheck) != 0;
    epoch.group.assign(targets.begin(), targets.end());
    for (const std::uint32_t target : targets) {
        Peer& peer = core.peer(target);
        if (OSC_FAULT(complete_early) && core.here(target)) sync::send_complete(core.slot, target);
        peer.started = true;
        peer.post = Post::Open;
    }
    if (may_wait) core.strategies.pscw->start(core, guard, targets);
    return Fault::None;
}

Fault complete(Core& core) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::Start) return fail(Fault::Sync, "MPI_Win_start has not been called");
    // A target that was not used still has to be awaited: its post must not be left for the next epoch. One that died
    // before it came leaves the group: the epoch ends all the same, and the others are told, who wait for that.
    int dead = -1;
    for (std::size_t i = 0; i < epoch.group.size();) {
        Peer& peer = core.peer(epoch.group[i]);
        if (strategy::await_post(core, guard, peer) == Fault::None) {
            ++i;
            continue;
        }
        dead = static_cast<int>(peer.rank);
        peer.started = false;
        core.discard_put_off(peer.rank);
        epoch.group.erase(epoch.group.begin() + static_cast<std::ptrdiff_t>(i));
    }
    // The operations are over here when this returns, and at a target when its wait does (12.5.2). So a complete for
    // another node goes behind them in the same message, whose answer is left to the next call that needs it.
    const Fault late = guard.unlocked([&] {
        Fault first = Fault::None;
        for (const std::uint32_t target : epoch.group)
            if (const Fault fault = core.do_put_off(target); fault != Fault::None) first = fault;
        for (const std::uint32_t target : epoch.group) {
            const Fault fault = core.here(target) ? core.settle(target) : core.far_sync->complete(target);
            if (fault != Fault::None) first = fault;
        }
        for (const std::uint32_t target : epoch.group) {
            if (core.here(target)) continue;
            if (const Fault fault = core.settle_local(target); fault != Fault::None) first = fault;
        }
        return first;
    });
    for (const std::uint32_t target : epoch.group) {
        core.peer(target).started = false;
        if (!OSC_FAULT(complete_early) && core.here(target)) sync::send_complete(core.slot, target);
    }
    close_touched(core);
    epoch.access = Access::None;
    return dead < 0 ? late : died(static_cast<std::uint32_t>(dead), "the post that this epoch awaits");
}

namespace {

// An exposure epoch one of whose origins died is over. Completes of the others may still come, and would be taken for
// those of the next one, which there must not be.
Fault lost(Epoch& epoch, Fault fault) {
    epoch.posted = false;
    epoch.origin_died = true;
    return fault;
}

}  // namespace

Fault wait(Core& core) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (!epoch.posted) return fail(Fault::Sync, "MPI_Win_post has not been called");
    if (OSC_FAULT(wait_early)) {
        epoch.posted = false;
        return Fault::None;
    }
    const auto count = static_cast<std::uint32_t>(epoch.origins.size());
    const Fault fault = wait_for(core, guard, epoch.origins, "this exposure epoch",
                                 [&](auto&& dead) { return sync::await_completes(core.slot, core.me, count, dead); });
    if (fault != Fault::None) return lost(epoch, fault);
    epoch.posted = false;
    return Fault::None;
}

namespace {

constexpr std::uint32_t kYieldEvery = 64;  // tests that are not successful

}  // namespace

Fault test(Core& core, bool& done) {
    std::vector<std::uint32_t> doubtful;
    bool yields = false;
    {
        StateGuard guard(core);
        Epoch& epoch = core.epoch;
        if (!epoch.posted) return fail(Fault::Sync, "MPI_Win_post has not been called");
        done = sync::take_completes(core.slot, core.me, static_cast<std::uint32_t>(epoch.origins.size()));
        if (done) {
            epoch.posted = false;
            return Fault::None;
        }
        // Asking the system about the origins is too slow for every test of a polling program.
        if (++epoch.tests % kPollEvery == 0) doubtful = epoch.origins;
        yields = epoch.tests % kYieldEvery == 0;
    }
    // A thread that polls would keep the window's other threads out if it held the state meanwhile, or never yielded.
    shm::poll_host();
    if (yields) ::sched_yield();
    for (const std::uint32_t origin : doubtful) {
        if (core.alive(origin)) continue;
        StateGuard guard(core);
        // Another thread may have ended that epoch and begun one without this origin.
        const std::vector<std::uint32_t>& origins = core.epoch.origins;
        if (core.epoch.posted && std::find(origins.begin(), origins.end(), origin) != origins.end())
            return lost(core.epoch, died(origin, "this exposure epoch"));
    }
    return Fault::None;
}

}  // namespace osc::epoch
