// Passive target: lock, unlock, lock_all, unlock_all, flush. What is legal; the window's lock strategy acquires the
// locks.
#include <utility>

#include "diag/inject.h"
#include "epoch/epoch.h"
#include "strategy/targets.h"
#include "transport/shm/compare.h"

namespace osc::epoch {
namespace {

using diag::fail;
using strategy::do_now;
using strategy::drop;
using strategy::give_back_far;
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

Fault may_lock(Core& core, std::uint32_t target) {
    const Access access = core.epoch.access;
    if (access == Access::FenceUsed || access == Access::Start || access == Access::LockAll)
        return fail(Fault::Sync, "%s is open; end it before MPI_Win_lock", access_name(access));
    if (core.peer(target).held == Held::None) return Fault::None;
    return fail(Fault::Sync, "rank %u is locked by this process already", target);
}

Fault may_lock_all(Core& core) {
    const Access access = core.epoch.access;
    if (access == Access::None || access == Access::Fence) return Fault::None;
    return fail(Fault::Sync, "%s is open; end it before MPI_Win_lock_all", access_name(access));
}

// Waits for this thread's deferred lock. Another thread may change the epoch meanwhile, so `may` is asked again.
template <class May>
Fault await_order(Core& core, StateGuard& guard, May&& may) {
    if (OSC_FAULT(lock_blocks_process)) return strategy::acquire_deferred_locks(core, guard);
    if (!strategy::t_lock_deferred) return Fault::None;
    guard.unlocked([] {
        strategy::acquire_deferred_lock();
        return true;
    });
    return may();
}

// Has done all that was put off; the first fault that was met.
Fault do_all_now(Core& core) {
    Fault first = Fault::None;
    for (const std::uint32_t target : core.put_off_targets())
        if (const Fault fault = do_now(core, target); fault != Fault::None) first = fault;
    return first;
}

// Waits for what is under way; with nothing left, the next flush may be the fast one again. An operation that another
// thread leaves meanwhile counts before it takes the state, so one of the two sees the other.
Fault settle_and_count(Core& core, std::uint32_t target) {
    const Fault fault = core.settle(target);
    if (core.epoch.access != Access::LockAll) return fault;
    StateGuard guard(core);
    if (core.unsettled.load(std::memory_order_acquire) == 0 && core.epoch.access == Access::LockAll)
        core.flushable.store(core.size, std::memory_order_relaxed);
    return fault;
}

}  // namespace

void full_order(Core& core) {
    if (!order_and_count(core)) return;
    core.order.store(kPollEvery, std::memory_order_relaxed);
    shm::poll_host();
}

void unlock_late(Core& core, std::uint32_t target, bool threaded) {
    core.epoch.end_lock(core.peers[target]);
    if (threaded) core.state.unlock();
    sync::LockContext context = core.lock_context();
    sync::hand_over(context, target, false);
}

void unlocked_often(Core& core) {
    core.unlocks.store(kPollEvery, std::memory_order_relaxed);
    shm::poll_host();
}

Fault lock(Core& core, std::uint32_t target, LockKind kind, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    const bool no_check = (asserts & kNoCheck) != 0;
    const auto may = [&] { return may_lock(core, target); };
    Fault fault = may();
    if (fault == Fault::None && !no_check) fault = await_order(core, guard, may);
    if (fault != Fault::None) return fault;
    Peer& peer = core.peer(target);
    if (no_check)
        peer.held = Held::NoCheck;
    else
        fault = core.strategies.lock->lock(core, guard, peer, kind);
    if (fault != Fault::None) return fault;
    epoch.access = Access::Lock;
    ++epoch.locks;
    if (!strategy::is_later(peer.held)) peer.allow();
    return Fault::None;
}

Fault unlock(Core& core, std::uint32_t target) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::Lock || core.peer(target).held == Held::None)
        return fail(Fault::Sync, "rank %u is not locked by this process", target);
    // A fault of an operation is told, and the lock is released all the same.
    const Fault late = guard.unlocked([&] {
        const Fault done = do_now(core, target);
        const Fault asked = give_back_far(core, core.peer(target));
        const Fault ended = core.settle(target);
        return done != Fault::None ? done : asked != Fault::None ? asked : ended;
    });
    strategy::end_deferred_lock(core, guard, target);
    if (core.peer(target).held == Held::None)
        return fail(Fault::Sync, "rank %u was unlocked by another thread meanwhile", target);
    const Held held = core.peer(target).held;
    drop(core, core.peer(target));
    if (--epoch.locks == 0) epoch.access = Access::None;
    if (shm::count_down(core.unlocks)) unlocked_often(core);
    if (held == Held::NoCheck) return late;
    const bool shared = held == Held::Shared || held == Held::SharedLater || held == Held::SharedWord;
    const LockKind kind = shared ? LockKind::Shared : LockKind::Exclusive;
    const Fault given = core.strategies.lock->unlocked(core, guard, target, kind);
    return given != Fault::None ? given : late;
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
    // A complete may have left its last operations under way.
    const bool settled = core.unsettled.load(std::memory_order_acquire) == 0;
    core.flushable.store(settled ? core.size : 0, std::memory_order_relaxed);
    return Fault::None;
}

Fault unlock_all(Core& core) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::LockAll) return fail(Fault::Sync, "MPI_Win_lock_all has not been called");
    const Fault late = guard.unlocked([&] {
        Fault asked = do_all_now(core);
        for (const std::uint32_t rank : epoch.touched)
            if (const Fault fault = give_back_far(core, core.peer(rank)); fault != Fault::None) asked = fault;
        const Fault ended = core.settle();
        return asked != Fault::None ? asked : ended;
    });
    if (epoch.access != Access::LockAll)
        return fail(Fault::Sync, "MPI_Win_unlock_all was called by another thread meanwhile");
    if (epoch.no_check) full_order(core);  // else the releases are as good
    for (const std::uint32_t rank : epoch.touched)
        drop(core, core.peer(rank));
    epoch.touched.clear();
    epoch.access = Access::None;
    core.flushable.store(0, std::memory_order_relaxed);
    if (shm::count_down(core.unlocks)) unlocked_often(core);
    const Fault given = core.strategies.lock->all_unlocked(core, guard);
    return given != Fault::None ? given : late;
}

void left_under_way(Core& core, Peer& peer) {
    StateGuard guard(core);
    core.flushable.store(0, std::memory_order_relaxed);
    if (peer.held == Held::Exclusive) peer.held = Held::ExclusiveInUse;
}

namespace {

Fault may_flush(Core& core, std::uint32_t target) {
    const Access access = core.epoch.access;
    if (access != Access::LockAll && (access != Access::Lock || core.peer(target).held == Held::None))
        return fail(Fault::Sync, "rank %u is not locked; flush is for lock and lock_all epochs", target);
    full_order(core);
    return Fault::None;
}

Fault may_flush_all(Core& core) {
    if (core.epoch.access != Access::LockAll && core.epoch.access != Access::Lock)
        return fail(Fault::Sync, "no lock or lock_all epoch is open");
    full_order(core);
    return Fault::None;
}

}  // namespace

Fault flush(Core& core, std::uint32_t target) {
    if (const Fault fault = may_flush(core, target); fault != Fault::None) return fault;
    if (const Fault fault = do_now(core, target); fault != Fault::None) return fault;
    return settle_and_count(core, target);
}

Fault flush_all(Core& core) {
    if (const Fault fault = may_flush_all(core); fault != Fault::None) return fault;
    if (const Fault fault = do_all_now(core); fault != Fault::None) return fault;
    return settle_and_count(core, Core::kEveryTarget);
}

Fault flush_local(Core& core, std::uint32_t target) {
    Fault fault = may_flush(core, target);
    if (fault == Fault::None) fault = do_now(core, target);
    return fault == Fault::None ? core.settle_local(target) : fault;
}

Fault flush_local_all(Core& core) {
    Fault fault = may_flush_all(core);
    if (fault == Fault::None) fault = do_all_now(core);
    return fault == Fault::None ? core.settle_local(Core::kEveryTarget) : fault;
}

Fault may_request(Core& core) {
    const StateGuard guard(core);
    const Access access = core.epoch.access;
    if (access == Access::Lock || access == Access::LockAll) return Fault::None;
    return fail(Fault::Sync, "no lock or lock_all epoch is open; operations that give a request need one");
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
    if (core.pointers_given) return Fault::None;
    core.pointers_given = true;
    if (core.epoch.access == Access::Lock) return strategy::acquire_deferred_locks(core, guard);
    if (core.epoch.access != Access::LockAll || core.epoch.no_check) return Fault::None;
    return strategy::acquire_all_here(core, guard);
}

}  // namespace osc::epoch
