// General active target synchronisation: post, start, complete, wait, test.
#include <sched.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "core/epoch.h"
#include "core/targets.h"
#include "sync/pscw.h"

namespace osc::epoch {

void close_touched(Core& core) {
    for (const std::uint32_t rank : core.epoch.touched) {
        core.target(rank).touched = false;
        core.target(rank).forbid();
    }
    core.epoch.touched.clear();
}

namespace {

using base::fail;
using strategy::died;
using strategy::wait_for;

// Notes a target of the open start for the hang reporter.
void set_started(Core& core, std::uint32_t rank, bool started) {
    shm::ControlBlock::note(core.mine().started(rank), rank, started);
}

}  // namespace

Fault post(Core& core, std::span<const std::uint32_t> origins, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.posted)
        return fail(Fault::Sync, "an exposure epoch is open already; call MPI_Win_wait before the next post");
    if (epoch.access == Access::FenceUsed)
        return fail(Fault::Sync, "a fence epoch is open; end it before MPI_Win_post");
    if (epoch.origin_died)
        return fail(Fault::Dead,
                    "an origin of an earlier exposure epoch died, or its connection was lost; there can be no other in "
                    "this window");
    epoch.origins.assign(origins.begin(), origins.end());
    epoch.posted = true;
    epoch.announced = false;
    if ((asserts & kNoCheck) != 0) return Fault::None;
    Fault fault = Fault::None;
    for (const std::uint32_t origin : origins) {
        if (core.is_local(origin)) {
            [[maybe_unused]] const bool is_only_one = sync::send_post(core.controls, core.me, origin);
            OSC_ASSERT(is_only_one);
        } else if (const Fault sent = core.remote_sync->post(origin); sent != Fault::None) {
            fault = sent;
        }
    }
    return fault;
}

Fault start(Core& core, std::span<const std::uint32_t> targets, unsigned asserts, bool may_wait) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::None && epoch.access != Access::Fence)
        return fail(Fault::Sync, "another access epoch is open; end it before MPI_Win_start");
    epoch.group.assign(targets.begin(), targets.end());
    for (const std::uint32_t rank : targets)
        core.target(rank);  // before the epoch is open: the description takes memory
    epoch.access = Access::Start;
    epoch.no_check = (asserts & kNoCheck) != 0;
    for (const std::uint32_t rank : targets) {
        Target& target = core.target(rank);
        target.started = true;
        set_started(core, rank, true);
        target.post = Post::Open;
    }
    if (!may_wait) return Fault::None;
    core.strategies.pscw->start(core, guard, targets);
    if (core.pointers_given) static_cast<void>(strategy::await_local_posts(core, guard));  // complete reports the dead
    return Fault::None;
}

Fault complete(Core& core) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::Start) return fail(Fault::Sync, "MPI_Win_start has not been called");
    // The post of an unused target must be consumed too: it must not be left for the next epoch. A target that died
    // before its post leaves the group. The epoch ends all the same, and the other targets, which wait for that, get
    // their complete.
    int dead = -1;
    for (std::size_t i = 0; i < epoch.group.size();) {
        Target& target = core.target(epoch.group[i]);
        if (strategy::await_post(core, guard, target) == Fault::None) {
            ++i;
            continue;
        }
        dead = static_cast<int>(target.rank);
        target.started = false;
        set_started(core, target.rank, false);
        core.deferred.discard(target.rank);
        epoch.group.erase(epoch.group.begin() + static_cast<std::ptrdiff_t>(i));
    }
    // MPI_Win_complete returns when the operations are complete at the origin; MPI_Win_wait returns when they are
    // complete at the target (12.5.2). So the complete for a remote target follows them in the same message, and a
    // later call awaits its reply; this one does if the target calls MPI_Win_test.
    const Fault late = guard.unlocked([&] {
        base::FirstFault first;
        for (const std::uint32_t rank : epoch.group)
            first.note(core.perform_deferred(rank));
        for (const std::uint32_t rank : epoch.group)
            first.note(core.is_local(rank) ? core.complete_ops(rank) : core.remote_sync->send_complete(rank));
        for (const std::uint32_t rank : epoch.group) {
            if (core.is_local(rank)) continue;
            first.note(core.remote_sync->awaits_complete(rank) ? core.complete_ops(rank) : core.complete_local(rank));
        }
        return first.take();
    });
    for (const std::uint32_t rank : epoch.group) {
        core.target(rank).started = false;
        set_started(core, rank, false);
        if (core.is_local(rank)) sync::send_complete(core.controls, rank);
    }
    close_touched(core);
    epoch.access = Access::None;
    return dead < 0 ? late : died(static_cast<std::uint32_t>(dead), "the post that this epoch awaits");
}

namespace {

// Ends an exposure epoch of which an origin died, and forbids another one: completes of the other origins may still
// arrive and would count for it.
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
    const auto count = static_cast<std::uint32_t>(epoch.origins.size());
    const shm::WaitScope waits(shm::WaitKind::Completes, core.id, core.me);
    const Fault fault = wait_for(core, guard, epoch.origins, "this exposure epoch", [&](strategy::Dead dead) {
        return sync::await_completes(core.controls, core.me, count, dead);
    });
    if (fault != Fault::None) return lost(epoch, fault);
    epoch.posted = false;
    return Fault::None;
}

namespace {

constexpr std::uint32_t kYieldEvery = 64;  // tests that are not successful

// Ends the exposure epoch if all its origins have completed.
bool end_exposure(Core& core) {
    Epoch& epoch = core.epoch;
    if (!sync::take_completes(core.controls, core.me, static_cast<std::uint32_t>(epoch.origins.size()))) return false;
    epoch.posted = false;
    return true;
}

}  // namespace

Fault test(Core& core, bool& done) {
    std::vector<std::uint32_t> doubtful;
    std::vector<std::uint32_t> remote;
    bool yields = false;
    {
        StateGuard guard(core);
        Epoch& epoch = core.epoch;
        if (!epoch.posted) return fail(Fault::Sync, "MPI_Win_post has not been called");
        done = end_exposure(core);
        if (done) return Fault::None;
        if (core.remote_sync != nullptr && !std::exchange(epoch.announced, true))
            std::ranges::copy_if(epoch.origins, std::back_inserter(remote),
                                 [&](std::uint32_t origin) { return !core.is_local(origin); });
        // Asking the system whether the origins live is too slow for every test of a polling program.
        if (++epoch.tests % kPollEvery == 0) doubtful = epoch.origins;
        yields = epoch.tests % kYieldEvery == 0;
    }
    if (!remote.empty()) {
        // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): remote is empty where remote_sync is null
        core.remote_sync->announce_test(remote);
        StateGuard guard(core);
        done = core.epoch.posted && end_exposure(core);
        if (done) return Fault::None;
    }
    // A thread that polls with the state lock held, or without ever yielding, would starve the window's other threads.
    shm::poll_host();
    if (yields) ::sched_yield();
    for (const std::uint32_t origin : doubtful) {
        if (core.members.alive(origin)) continue;
        StateGuard guard(core);
        // Another thread may have ended that epoch and begun one without this origin.
        const std::vector<std::uint32_t>& origins = core.epoch.origins;
        if (core.epoch.posted && std::find(origins.begin(), origins.end(), origin) != origins.end())
            return lost(core.epoch, died(origin, "this exposure epoch"));
    }
    return Fault::None;
}

}  // namespace osc::epoch
