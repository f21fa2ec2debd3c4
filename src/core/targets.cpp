// Acquires and releases locks; awaits posts and fences.
#include "core/targets.h"

#include <ctime>

#include "base/fault.h"
#include "sync/pscw.h"

namespace osc::strategy {
namespace {

using base::fail;
using sync::LockKind;
using sync::LockResult;

Fault lock_lost(const sync::LockContext& context, std::uint32_t rank) {
    const bool known = context.controls.is_local(context.dead_rank);
    return fail(Fault::Dead, "rank %u died%s while it held a lock on rank %u; the lock cannot be taken any more",
                context.dead_rank, known ? "" : ", or its connection was lost,", rank);
}

// A process notes a shared lock before it requests it, and removes the note after the release. If the process dies in
// between, waiters find it as a holder: also if it dies in the queue and is granted the lock after its death. Only this
// process writes the word, under the window's state lock.
void note_shared(Core& core, std::uint32_t rank) {
    shm::ControlBlock::note(core.mine().shared_locks(rank), rank, true);
}

void forget_shared(Core& core, std::uint32_t rank) {
    shm::ControlBlock::note(core.mine().shared_locks(rank), rank, false);
}

}  // namespace

void wait_for_other_thread() {
    const base::TimedWait waits;
    shm::poll_host();
    const timespec pause{0, 50000};
    ::nanosleep(&pause, nullptr);
}

Fault died(std::uint32_t rank, const char* doing) {
    return fail(Fault::Dead, "rank %u died, or its connection is lost; %s can never complete", rank, doing);
}

Fault wait_for(Core& core, StateGuard& guard, std::span<const std::uint32_t> ranks, const char* doing,
               base::FunctionRef<bool(Dead)> wait) {
    std::int64_t dead = -1;
    const auto look = [&] {
        for (const std::uint32_t rank : ranks)
            if (dead < 0 && !core.members.alive(rank)) dead = rank;
        return dead >= 0;
    };
    if (guard.unlocked([&] { return wait(look); })) return Fault::None;
    return died(static_cast<std::uint32_t>(dead), doing);
}

Fault acquire(Core& core, StateGuard& guard, Target& target, LockKind kind, bool inside_lock_all) {
    const bool shared = kind == LockKind::Shared;
    const HeldLock before = target.held_lock;
    if (!core.is_local(target.rank)) {
        // Set held_lock after the request is queued: an operation that another thread sends must follow the request.
        const Fault fault = guard.unlocked([&] { return core.remote_sync->lock(target.rank, kind, inside_lock_all); });
        if (fault != Fault::None) return fault;
        target.held_lock = shared ? HeldLock::Shared : HeldLock::ExclusiveInUse;
        return Fault::None;
    }
    if (shared) note_shared(core, target.rank);
    const bool got = kind == LockKind::Exclusive ? sync::try_lock_as(target.control().lock, core.exclusive)
                                                 : sync::try_lock_shared(target.control().lock);
    if (!got) {
        if (core.stats != nullptr) core.stats->other(stats::Other::LockContended);
        sync::LockContext context = core.lock_context();
        context.inside_lock_all = inside_lock_all;
        context.may_queue = !core.cell_busy;
        core.cell_busy = true;
        const bool mine = context.may_queue;
        const shm::WaitScope waits(shm::WaitKind::Lock, core.id, core.me, target.rank);
        const LockResult result = guard.unlocked([&] { return sync::lock_wait(context, target.rank, kind); });
        if (mine) core.cell_busy = false;
        if (result != LockResult::Granted) {
            if (shared && target.held_lock == before) forget_shared(core, target.rank);
            return lock_lost(context, target.rank);
        }
        if (target.held_lock != before) {  // another thread of a lock_all epoch acquired it while this one waited
            sync::unlock_shared(context, target.rank);
            return Fault::None;
        }
        if (shared) note_shared(core, target.rank);  // another thread whose request failed may have removed the note
    }
    target.held_lock = shared ? HeldLock::Shared : HeldLock::Exclusive;
    return Fault::None;
}

void drop(Core& core, Target& target) {
    sync::LockContext context = core.lock_context();
    const HeldLock held = target.held_lock;
    target.held_lock = HeldLock::None;
    target.touched = false;
    target.forbid();
    core.deferred.discard(target.rank);       // the queue is empty unless the lock could not be acquired
    if (!core.is_local(target.rank)) return;  // release_remote() releases it
    if (held == HeldLock::Exclusive || held == HeldLock::ExclusiveInUse) {
        sync::unlock_exclusive(context, target.rank);
    } else if (held == HeldLock::Shared) {
        sync::unlock_shared(context, target.rank);
        forget_shared(core, target.rank);
    }
}

void release_remote(Core& core, const Target& target) {
    if (core.is_local(target.rank) || target.held_lock == HeldLock::None || target.held_lock == HeldLock::NoCheck ||
        is_two_level(target.held_lock))
        return;
    core.remote_sync->unlock(target.rank);
}

namespace {

// One thread acquires the lock for all threads. A second request could wait behind an exclusive waiter that itself
// waits for this process.
template <class IsHeld, class Take>
Fault take_once(StateGuard& guard, Target& target, IsHeld&& is_held, Take&& take) {
    while (!is_held() && target.post == Post::Awaited)
        guard.unlocked(wait_for_other_thread);
    if (is_held()) return Fault::None;
    target.post = Post::Awaited;
    const Fault fault = base::attempt(take);  // the other threads must not wait for one that has no memory
    target.post = Post::Open;
    return fault;
}

// Waits until a target of this node has made the fence that this process has made.
Fault await_fence(Core& core, StateGuard& guard, Target& target) {
    shm::ControlBlock& block = target.control();
    const std::uint64_t fence = core.epoch.fences;
    const auto made = [&] { return block.fences.load(std::memory_order_seq_cst) >= fence; };
    if (made()) return Fault::None;
    const shm::WaitScope waits(shm::WaitKind::TargetFence, core.id, core.me, target.rank);
    const bool met = guard.unlocked(
        [&] { return shm::wait_until(block.pscw_bell, made, [&] { return !core.members.alive(target.rank); }); });
    return met ? Fault::None : fail(Fault::Dead, "rank %u died before it made this fence", target.rank);
}

}  // namespace

Fault await_post(Core& core, StateGuard& guard, Target& target) {
    if (core.epoch.no_check || target.post == Post::Taken) return Fault::None;
    const shm::WaitScope waits(shm::WaitKind::Post, core.id, core.me, target.rank);
    const bool mine = target.post != Post::Awaited;  // else another thread consumes the post for both
    if (mine) target.post = Post::Awaited;
    const std::uint32_t rank = target.rank;
    const Fault fault = wait_for(core, guard, {&rank, 1}, "the post that this epoch awaits", [&](Dead dead) {
        if (mine) return sync::take_post(core.controls, core.me, rank, dead);
        return shm::wait_until(
            core.mine().pscw_bell, [&] { return target.post == Post::Taken; }, dead);
    });
    if (!mine) return fault;
    target.post = fault == Fault::None ? Post::Taken : Post::Open;
    if (core.threaded) core.mine().pscw_bell.ring();
    return fault;
}

// Another thread may end the epoch meanwhile.
Fault await_local_posts(Core& core, StateGuard& guard) {
    base::FirstFault first;
    const std::vector<std::uint32_t>& group = core.epoch.group;
    for (std::size_t i = 0; core.epoch.access == Access::Start && i < group.size(); ++i)
        if (group[i] != core.me && core.is_local(group[i])) first.note(await_post(core, guard, core.target(group[i])));
    return first.take();
}

Fault make_ready(Core& core, StateGuard& guard, Target& target) {
    const Epoch& epoch = core.epoch;
    switch (epoch.access) {
        case Access::None:
        case Access::Fence:
            return Fault::None;
        case Access::FenceUsed:
            if (!epoch.needs_target_fence || !core.is_local(target.rank))
                return Fault::None;  // targets on other nodes delay messages that arrive before their fence
            return await_fence(core, guard, target);
        case Access::Lock: {
            if (target.held_lock == HeldLock::None) return fail(Fault::Sync, "rank %u is not locked", target.rank);
            const LockKind kind = target.held_lock == HeldLock::SharedDeferred ? LockKind::Shared : LockKind::Exclusive;
            return take_once(
                guard, target, [&] { return !is_deferred(target.held_lock); },
                [&] { return acquire(core, guard, target, kind); });
        }
        case Access::LockAll:
            if (epoch.no_check) return Fault::None;
            return take_once(
                guard, target, [&] { return target.held_lock != HeldLock::None; },
                [&] { return core.strategies.lock->lock_one_of_all(core, guard, target); });
        case Access::Start:
            return await_post(core, guard, target);
    }
    return Fault::None;
}

Fault acquire_all_local(Core& core, StateGuard& guard) {
    for (std::uint32_t rank = 0; rank < core.size; ++rank) {
        Target& target = core.target(rank);
        if (target.held_lock != HeldLock::None || !core.is_local(rank)) continue;
        core.epoch.make_room();
        const bool inside = !core.epoch.touched.empty();
        // In an open epoch another thread may be acquiring it.
        const Fault fault = core.epoch.access == Access::LockAll
                                ? make_ready(core, guard, target)
                                : acquire(core, guard, target, LockKind::Shared, inside);
        if (fault != Fault::None) return fault;
        core.epoch.touch(target);
    }
    return Fault::None;
}

Fault make_open(Core& core, StateGuard& guard, Target& target) {
    if (const Fault fault = make_ready(core, guard, target); fault != Fault::None) return fault;
    if (core.deferred.has(target.rank)) {
        const Fault fault = guard.unlocked([&] { return core.perform_deferred(target.rank); });
        if (fault != Fault::None) return fault;
    }
    if (core.epoch.access == Access::Lock)
        target.allow();
    else
        core.epoch.touch(target);
    return Fault::None;
}

Fault perform_queued(Core& core, std::uint32_t rank) {
    if (!core.deferred.has(rank)) return Fault::None;
    StateGuard guard(core);
    return make_open(core, guard, core.target(rank));
}

}  // namespace osc::strategy
