// Passive target: lock, unlock, lock_all, unlock_all, flush.
//
// lock_all is lazy: a target's shared lock is taken with the first operation to it, so that the call costs nothing for
// targets that are not used. It is eager where the user may load and store without libosc seeing it: for this
// process's own memory always, for the others once their pointers have been given out.
#include <ctime>

#include "diag/inject.h"
#include "epoch/epoch.h"
#include "transport/shm/compare.h"

namespace osc::epoch {
namespace {

using diag::fail;
using sync::LockKind;
using sync::LockResult;

Fault died(const sync::LockContext& context, std::uint32_t target) {
    return fail(Fault::Dead, "rank %u died while it held a lock on rank %u; the lock cannot be taken any more",
                context.dead_rank, target);
}

// A shared lock is noted before it is asked for, until after it was released, so that a process which dies in between
// is known as its holder: also one that dies in the queue and is granted the lock after that. Only this process writes
// the word, under the window's state.
void note_shared(Core& core, std::uint32_t target) {
    std::atomic<std::uint64_t>& noted = core.mine().shared_locks(target);
    noted.store(noted.load(std::memory_order_relaxed) | shm::ControlBlock::bit(target), std::memory_order_release);
}

void forget_shared(Core& core, std::uint32_t target) {
    std::atomic<std::uint64_t>& noted = core.mine().shared_locks(target);
    noted.store(noted.load(std::memory_order_relaxed) & ~shm::ControlBlock::bit(target), std::memory_order_release);
}

// Takes the lock of a target; `guard` holds the window's state, and is let go while waiting.
Fault acquire(Core& core, StateGuard& guard, Peer& peer, LockKind kind, bool inside_lock_all = false) {
    if (OSC_FAULT(exclusive_skipped) ? kind == LockKind::Exclusive
        : OSC_FAULT(shared_skipped)  ? kind == LockKind::Shared
                                     : OSC_FAULT(lock_all_skipped) && core.epoch.access == Access::LockAll) {
        peer.held = Held::NoCheck;
        return Fault::None;
    }
    const bool shared = kind == LockKind::Shared;
    if (!core.here(peer.rank)) {
        // Held once it is asked for: an operation that another thread sends must come behind that.
        const Fault fault = guard.unlocked([&] { return core.far_sync->lock(peer.rank, kind, inside_lock_all); });
        if (fault == Fault::None) peer.held = shared ? Held::Shared : Held::ExclusiveInUse;
        return fault;
    }
    if (shared) note_shared(core, peer.rank);
    const bool got = kind == LockKind::Exclusive ? sync::try_lock_as(peer.control().lock, core.exclusive)
                                                 : sync::try_lock_shared(peer.control().lock);
    if (!got) {
        sync::LockContext context = core.lock_context();
        context.inside_lock_all = inside_lock_all;
        context.may_queue = !core.cell_busy;
        core.cell_busy = true;
        const bool mine = context.may_queue;
        const LockResult result = guard.unlocked([&] { return sync::lock_wait(context, peer.rank, kind); });
        if (mine) core.cell_busy = false;
        if (result != LockResult::Granted) {
            if (shared && peer.held == Held::None) forget_shared(core, peer.rank);
            return died(context, peer.rank);
        }
        if (peer.held != Held::None) {  // another thread of a lock_all epoch took it while this one waited
            sync::unlock_shared(context, peer.rank);
            return Fault::None;
        }
        if (shared) note_shared(core, peer.rank);  // another thread that failed may have taken the note away
    }
    peer.held = shared ? Held::Shared : Held::Exclusive;
    return Fault::None;
}

void drop(Core& core, Peer& peer) {
    sync::LockContext context = core.lock_context();
    const Held held = peer.held;
    peer.held = Held::None;
    peer.touched = false;
    peer.forbid();
    if (!core.here(peer.rank)) return;  // given back by give_back_far
    if (held == Held::Exclusive || held == Held::ExclusiveInUse) {
        sync::unlock_exclusive(context, peer.rank);
    } else if (held == Held::Shared) {
        sync::unlock_shared(context, peer.rank);
        forget_shared(core, peer.rank);
    }
}

// The lock of a target on another node is given back with the last message to it, which is then awaited.
Fault give_back_far(Core& core, const Peer& peer) {
    if (core.here(peer.rank) || peer.held == Held::None || peer.held == Held::NoCheck) return Fault::None;
    return core.far_sync->unlock(peer.rank);
}

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

// Lets another thread go on.
int nap() {
    const timespec moment{0, 50000};
    return ::nanosleep(&moment, nullptr);
}

Fault take_all(Core& core, StateGuard& guard) {
    for (std::uint32_t rank = 0; rank < core.size; ++rank) {
        Peer& peer = core.peer(rank);
        if (peer.held != Held::None || !core.here(rank)) continue;
        const bool inside = !core.epoch.touched.empty();
        if (const Fault fault = acquire(core, guard, peer, LockKind::Shared, inside); fault != Fault::None)
            return fault;
        core.epoch.touch(peer);
    }
    return Fault::None;
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

void poll_host() {
    const shm::WaitPolicy policy = shm::wait_policy();
    if (policy.progress != nullptr) policy.progress();
}

void full_order(Core& core) {
    if (!order_and_count(core)) return;
    core.order.store(kPollEvery, std::memory_order_relaxed);
    poll_host();
}

void unlocked_often(Core& core) {
    core.unlocks.store(kPollEvery, std::memory_order_relaxed);
    poll_host();
}

Fault open_target(Core& core, Peer& peer) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    switch (epoch.access) {
        case Access::None:
            return fail(Fault::Sync, "no access epoch is open; open one with fence, start, lock or lock_all first");
        case Access::Fence:
            epoch.access = Access::FenceUsed;
            [[fallthrough]];
        case Access::FenceUsed:
            if (!peer.touched && !core.here(peer.rank) && !epoch.all_entered) {
                const std::uint64_t fence = epoch.fences;
                const Fault fault = guard.unlocked([&] { return core.far_sync->open(peer.rank, fence); });
                if (fault != Fault::None) return fault;
            }
            break;
        case Access::Lock:
            if (peer.held == Held::None)
                return fail(Fault::Sync, "rank %u is not locked; lock it before the operation", peer.rank);
            return Fault::None;
        case Access::LockAll:
            if (peer.held != Held::None) return Fault::None;
            if (!epoch.no_check) {
                // One thread takes the lock for all: a second one that asked for it could wait behind an exclusive
                // waiter, who waits for this process.
                while (peer.post == Post::Awaited)
                    guard.unlocked(nap);
                if (peer.held != Held::None) return Fault::None;
                peer.post = Post::Awaited;
                const Fault fault = acquire(core, guard, peer, LockKind::Shared, true);
                peer.post = Post::Open;
                if (fault != Fault::None) return fault;
            }
            break;
        case Access::Start:
            if (!peer.started)
                return fail(Fault::Sync, "rank %u is not in the group given to MPI_Win_start", peer.rank);
            if (const Fault fault = open_started(core, guard, peer); fault != Fault::None) return fault;
            break;
    }
    epoch.touch(peer);
    return Fault::None;
}

Fault lock(Core& core, std::uint32_t target, LockKind kind, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access == Access::FenceUsed || epoch.access == Access::Start || epoch.access == Access::LockAll)
        return fail(Fault::Sync, "%s is open; end it before MPI_Win_lock", access_name(epoch.access));
    Peer& peer = core.peer(target);
    if (peer.held != Held::None) return fail(Fault::Sync, "rank %u is locked by this process already", target);
    if ((asserts & kNoCheck) != 0) {
        peer.held = Held::NoCheck;
    } else if (const Fault fault = acquire(core, guard, peer, kind); fault != Fault::None) {
        return fault;
    }
    epoch.access = Access::Lock;
    ++epoch.locks;
    peer.allow();
    return Fault::None;
}

Fault unlock(Core& core, std::uint32_t target) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::Lock || core.peer(target).held == Held::None)
        return fail(Fault::Sync, "rank %u is not locked by this process", target);
    // A fault of an operation is told, and the lock is released all the same.
    const Fault late = guard.unlocked([&] {
        const Fault asked = give_back_far(core, core.peer(target));
        const Fault ended = core.settle(target);
        return asked != Fault::None ? asked : ended;
    });
    if (core.peer(target).held == Held::None)
        return fail(Fault::Sync, "rank %u was unlocked by another thread meanwhile", target);
    drop(core, core.peer(target));
    if (--epoch.locks == 0) epoch.access = Access::None;
    if (shm::count_down(core.unlocks)) unlocked_often(core);
    return late;
}

Fault lock_all(Core& core, unsigned asserts) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (epoch.access != Access::None && epoch.access != Access::Fence)
        return fail(Fault::Sync, "%s is open; end it before MPI_Win_lock_all", access_name(epoch.access));
    epoch.no_check = (asserts & kNoCheck) != 0;
    if (!epoch.no_check) {
        if (core.pointers_given) {
            if (const Fault fault = take_all(core, guard); fault != Fault::None) {
                // There is no epoch that would give back what was taken.
                for (const std::uint32_t rank : epoch.touched)
                    drop(core, core.peer(rank));
                epoch.touched.clear();
                return fault;
            }
        } else {
            Peer& own = core.peer(core.me);
            if (const Fault fault = acquire(core, guard, own, LockKind::Shared); fault != Fault::None) return fault;
            epoch.touch(own);
        }
    }
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
        Fault asked = Fault::None;
        for (const std::uint32_t rank : epoch.touched)
            if (const Fault fault = give_back_far(core, core.peer(rank)); fault != Fault::None) asked = fault;
        const Fault ended = core.settle();
        return asked != Fault::None ? asked : ended;
    });
    if (epoch.access != Access::LockAll)
        return fail(Fault::Sync, "MPI_Win_unlock_all was called by another thread meanwhile");
    full_order(core);
    for (const std::uint32_t rank : epoch.touched)
        drop(core, core.peer(rank));
    epoch.touched.clear();
    epoch.access = Access::None;
    core.flushable.store(0, std::memory_order_relaxed);
    return late;
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
    return settle_and_count(core, target);
}

Fault flush_all(Core& core) {
    if (const Fault fault = may_flush_all(core); fault != Fault::None) return fault;
    return settle_and_count(core, Core::kEveryTarget);
}

Fault flush_local(Core& core, std::uint32_t target) {
    const Fault fault = may_flush(core, target);
    return fault == Fault::None ? core.settle_local(target) : fault;
}

Fault flush_local_all(Core& core) {
    const Fault fault = may_flush_all(core);
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
    if (core.epoch.access != Access::LockAll || core.epoch.no_check) return Fault::None;
    return take_all(core, guard);
}

}  // namespace osc::epoch
