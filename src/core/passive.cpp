// Passive target synchronisation: legality of lock, unlock, lock_all, unlock_all and flush. The window's lock strategy
// acquires the locks.
#include <utility>

#include "core/epoch.h"
#include "core/targets.h"
#include "shm/compare.h"

namespace osc::epoch {
namespace {

using base::fail;
using strategy::drop;
using strategy::perform_queued;
using strategy::release_remote;
using sync::LockKind;

const char* access_name(Access access) {
    switch (access) {
        case Access::None:
            return "no access epoch";
        case Access::Fence:
        case Access::FenceUsed:
            return "a fence epoch";
        case Access::Start:
            return "a start epoch";
        case Access::Lock:
            return "a lock epoch";
        case Access::LockAll:
            return "a lock_all epoch";
    }
    return "";
}

Fault may_lock(Core& core, std::uint32_t rank) {
    const Access access = core.epoch.access;
    if (access == Access::FenceUsed || access == Access::Start || access == Access::LockAll)
        return fail(Fault::Sync, "%s is open; end it before MPI_Win_lock", access_name(access));
    if (core.target(rank).held_lock == HeldLock::None) return Fault::None;
    return fail(Fault::Sync, "rank %u is locked by this process already", rank);
}

Fault may_lock_all(Core& core) {
    const Access access = core.epoch.access;
    if (access == Access::None || access == Access::Fence) return Fault::None;
    return fail(Fault::Sync, "%s is open; end it before MPI_Win_lock_all", access_name(access));
}

// Acquires the process's deferred lock first. Another thread may change the epoch meanwhile, so may() is called again.
template <class May>
Fault await_order(Core& core, StateGuard& guard, May&& may) {
    if (!core.lock_order->is_pending()) return Fault::None;
    guard.unlocked([&] { core.lock_order->acquire(); });
    return may();
}

// Performs the queued operations at all targets; returns their first fault.
Fault perform_all_queued(Core& core) {
    base::FirstFault first;
    for (const std::uint32_t rank : core.deferred.targets())
        first.note(perform_queued(core, rank));
    return first.take();
}

// After a flush that returns `fault`: if no operation is left incomplete, the next flush may take its fast path.
// Another thread's operation increments `incomplete` before it takes the state lock to clear `flushable`, so either
// this thread sees the count, or that one clears `flushable` after this.
Fault after_flush(Core& core, Fault fault) {
    if (core.epoch.access != Access::LockAll) return fault;
    StateGuard guard(core);
    if (core.incomplete.load(std::memory_order_acquire) == 0 && core.epoch.access == Access::LockAll)
        core.flushable.store(core.size, std::memory_order_relaxed);
    return fault;
}

}  // namespace

void full_order(Core& core) {
    if (!order_and_count(core.order)) return;
    core.order.store(kPollEvery, std::memory_order_relaxed);
    shm::poll_host();
}

void unlock_late(Core& core, std::uint32_t rank, bool threaded) {
    core.epoch.end_lock(core.targets[rank]);
    if (threaded) core.state.unlock();
    sync::LockContext context = core.lock_context();
    sync::hand_over(context, rank, false);
}

void unlocked_often(Core& core) {
    core.unlocks.store(kPollEvery, std::memory_order_relaxed);
    shm::poll_host();
}

Fault lock(Core& core, std::uint32_t rank, LockKind kind, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    const bool no_check = (asserts & kNoCheck) != 0;
    const auto may = [&] { return may_lock(core, rank); };
    Fault fault = may();
    if (fault == Fault::None && !no_check) fault = await_order(core, guard, may);
    if (fault != Fault::None) return fault;
    Target& target = core.target(rank);
    if (no_check)
        target.held_lock = HeldLock::NoCheck;
    else
        fault = core.strategies.lock->lock(core, guard, target, kind);
    if (fault != Fault::None) return fault;
    epoch.access = Access::Lock;
    ++epoch.locks;
    if (!strategy::is_deferred(target.held_lock)) target.allow();
    return Fault::None;
}

Fault unlock(Core& core, std::uint32_t rank) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::Lock || core.target(rank).held_lock == HeldLock::None)
        return fail(Fault::Sync, "rank %u is not locked by this process", rank);
    // A fault of an operation is returned, but the lock is released all the same.
    base::FirstFault first;
    guard.unlocked([&] {
        first.note(perform_queued(core, rank));
        release_remote(core, core.target(rank));
        first.note(core.complete_ops(rank));
    });
    core.lock_order->end(core, guard, rank);
    if (core.target(rank).held_lock == HeldLock::None)
        return fail(Fault::Sync, "rank %u was unlocked by another thread meanwhile", rank);
    const HeldLock held = core.target(rank).held_lock;
    drop(core, core.target(rank));
    if (held == HeldLock::NoCheck) fence_if_weak();  // otherwise the release of the lock orders
    if (--epoch.locks == 0) epoch.access = Access::None;
    if (held != HeldLock::NoCheck) {
        const bool shared =
            held == HeldLock::Shared || held == HeldLock::SharedDeferred || held == HeldLock::SharedTwoLevel;
        first.note(core.strategies.lock->unlocked(core, guard, rank, shared ? LockKind::Shared : LockKind::Exclusive));
    }
    if (shm::count_down(core.unlocks)) guard.unlocked([&] { unlocked_often(core); });
    return first.take();
}

Fault lock_all(Core& core, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    const bool no_check = (asserts & kNoCheck) != 0;
    const auto may = [&] { return may_lock_all(core); };
    Fault allowed = may();
    if (allowed == Fault::None && !no_check) allowed = await_order(core, guard, may);
    if (allowed != Fault::None) return allowed;
    epoch.no_check = no_check;
    if (!no_check)
        if (const Fault fault = core.strategies.lock->lock_all(core, guard); fault != Fault::None) return fault;
    epoch.access = Access::LockAll;
    // MPI_Win_complete may have left operations whose replies are outstanding.
    const bool none_incomplete = core.incomplete.load(std::memory_order_acquire) == 0;
    core.flushable.store(none_incomplete ? core.size : 0, std::memory_order_relaxed);
    return Fault::None;
}

Fault unlock_all(Core& core) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::LockAll) return fail(Fault::Sync, "MPI_Win_lock_all has not been called");
    base::FirstFault first;
    guard.unlocked([&] {
        first.note(perform_all_queued(core));
        for (const std::uint32_t rank : epoch.touched)
            release_remote(core, core.target(rank));
        first.note(core.complete_ops());
        if (epoch.no_check) full_order(core);  // otherwise the releases of the locks order
    });
    if (epoch.access != Access::LockAll)
        return fail(Fault::Sync, "MPI_Win_unlock_all was called by another thread meanwhile");
    for (const std::uint32_t rank : epoch.touched)
        drop(core, core.target(rank));
    epoch.touched.clear();
    epoch.access = Access::None;
    core.flushable.store(0, std::memory_order_relaxed);
    first.note(core.strategies.lock->all_unlocked(core, guard));
    if (shm::count_down(core.unlocks)) guard.unlocked([&] { unlocked_often(core); });
    return first.take();
}

void mark_incomplete(Core& core, Target& target) {
    StateGuard guard(core);
    core.flushable.store(0, std::memory_order_relaxed);
    if (target.held_lock == HeldLock::Exclusive) target.held_lock = HeldLock::ExclusiveInUse;
}

Fault flush(Core& core, std::uint32_t rank, reach::Completion until) {
    if (core.epoch.access != Access::LockAll && core.epoch.access != Access::Lock)
        return fail(Fault::Sync, "no lock or lock_all epoch is open, which flush calls need");
    full_order(core);
    base::FirstFault first;
    first.note(rank == Core::kEveryTarget ? perform_all_queued(core) : perform_queued(core, rank));
    first.note(after_flush(core, core.complete_ops(rank, until)));
    return first.take();
}

Fault need_passive(Core& core, const char* kind) {
    const StateGuard guard(core);
    const Access access = core.epoch.access;
    if (access == Access::Lock || access == Access::LockAll) return Fault::None;
    return fail(Fault::Sync, "no lock or lock_all epoch is open; %s need one", kind);
}

Fault must_not_flush(Core& core, std::uint32_t rank) {
    const StateGuard guard(core);
    if (core.epoch.access != Access::Lock || rank >= core.size || core.target(rank).held_lock != HeldLock::None)
        return Fault::None;
    return fail(Fault::Sync, "rank %u is not locked", rank);
}

Fault may_free(Core& core) {
    StateGuard guard(core);
    const Epoch& epoch = core.epoch;
    if (epoch.access == Access::Start || epoch.access == Access::Lock || epoch.access == Access::LockAll)
        return fail(Fault::Sync, "%s is open; end it before MPI_Win_free", access_name(epoch.access));
    if (epoch.posted) return fail(Fault::Sync, "an exposure epoch is open; call MPI_Win_wait before MPI_Win_free");
    return Fault::None;
}

Fault pointers_given(Core& core) {
    StateGuard guard(core);
    // Another thread, to which this window gave the first pointer, may still await what the epoch needs.
    if (std::exchange(core.pointers_given, true) && !core.threaded) return Fault::None;
    if (core.epoch.access == Access::Start) return strategy::await_local_posts(core, guard);
    if (core.epoch.access == Access::Lock) return core.lock_order->acquire_in(core, guard);
    if (core.epoch.access != Access::LockAll || core.epoch.no_check) return Fault::None;
    return strategy::acquire_all_local(core, guard);
}

}  // namespace osc::epoch
