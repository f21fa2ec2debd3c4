// The synchronisation calls. Each checks that it is legal in the state of the window's epochs, changes that state, and
// calls the window's strategies. Each returns a Fault; base::fault_text() names the violated rule. Thread-safe at
// MPI_THREAD_MULTIPLE. Sections are those of the MPI 4.1 report.
#pragma once

#include <span>

#include "core/core.h"
#include "core/lock_order.h"
#include "core/targets.h"
#include "shm/compare.h"

namespace osc::epoch {

/// The asserts of the standard, free of the host's constants.
enum Assert : unsigned {
    kNoCheck = 1,
    kNoStore = 2,
    kNoPut = 4,
    kNoPrecede = 8,
    kNoSucceed = 16,
};

/// Prepares an operation on `target` in the open epoch. If `deferred` is not null and becomes true, the caller queues
/// the operation. Otherwise this function has acquired the lock or awaited the post or fence that the operation needs,
/// and has performed the operations queued before it. Batched updates are performed in both cases.
Fault open_target(Core& core, Target& target, bool* deferred = nullptr);

/// Whether an operation on a target of another node may go without open_target(), because an earlier one in the same
/// epoch has prepared it. In windows whose strategies allow fast paths; under the window's state lock.
inline bool is_prepared(const Core& core, const Target& target) {
    switch (core.epoch.access) {
        case Access::Lock:
            return target.held_lock != HeldLock::None && !strategy::is_deferred(target.held_lock);
        case Access::FenceUsed:
        case Access::LockAll:
        case Access::Start:
            return target.touched;
        case Access::None:
        case Access::Fence:
            break;
    }
    return false;
}

/// Performs a simple operation on `rank`, adds it to a message or to a batch. False if the general path must perform
/// it, with nothing done: the operation gains nothing here, it is not allowed, or its target is not known or not open.
/// In windows whose strategies allow fast paths.
bool try_simple(Core& core, int rank, const op::Simple& what);

/// Performs batched operations. Every synchronisation call but the fast paths of MPI_Win_lock and MPI_Win_unlock, which
/// refuse a target with such operations, comes here first: it ends a run. A fault stays for Core::complete_ops().
void end_run(Core& core);
inline void end_run_if_any(Core& core) {
    if (__builtin_expect(core.in_run, 0)) end_run(core);
}

/// Closes for the fast path all targets opened by a fence, start or lock_all.
void close_touched(Core& core);

Fault fence(Core& core, unsigned asserts);                                         // 12.5.1
Fault post(Core& core, std::span<const std::uint32_t> origins, unsigned asserts);  // 12.5.2
/// Without `may_wait` the first operation awaits the post, also if the strategy is immediate.
Fault start(Core& core, std::span<const std::uint32_t> targets, unsigned asserts, bool may_wait = true);  // 12.5.2
Fault complete(Core& core);                                                                               // 12.5.2
Fault wait(Core& core);                                                                                   // 12.5.2
Fault test(Core& core, bool& done);                                                                       // 12.5.2
Fault lock(Core& core, std::uint32_t rank, sync::LockKind kind, unsigned asserts);                        // 12.5.3
Fault unlock(Core& core, std::uint32_t rank);                                                             // 12.5.3
Fault lock_all(Core& core, unsigned asserts);                                                             // 12.5.3
Fault unlock_all(Core& core);                                                                             // 12.5.3
/// The flush calls (12.5.4). An operation by load and store is complete when it returns and needs ordering only;
/// messages to an agent or to another node must be awaited.
Fault flush(Core& core, std::uint32_t rank, reach::Completion until = reach::Completion::AtTarget);
/// A fault unless a lock or lock_all epoch is open, which operations of this `kind` need: notified ones, and those that
/// give a request (12.3.5). Other MPI libraries do not enforce the latter, so libosc serves them too, and the usage
/// checker reports them; as it does a flush of a target that is not locked (12.5.4).
Fault need_passive(Core& core, const char* kind);
Fault must_not_flush(Core& core, std::uint32_t rank);
/// Called after an operation on `target` that is not complete yet: the calls that complete it must take their slow
/// paths.
void mark_incomplete(Core& core, Target& target);
/// A fault if an open epoch forbids MPI_Win_free (12.2.5).
Fault may_free(Core& core);

/// The fast path of MPI_Win_lock, exclusive and without asserts: a described target, an epoch state that allows the
/// lock, and a free lock word. Returns false without any effect if one of these does not hold; the caller then uses
/// lock(). kThreaded: other threads may use the window. kDeferring: windows of this process defer locks.
template <bool kThreaded, bool kDeferring>
inline bool try_lock(Core& core, std::uint32_t rank) {
    if (rank >= core.size) return false;
    if (kDeferring && core.lock_order->is_pending()) return false;
    Target& target = core.targets[rank];
    shm::ControlBlock* const block = target.block.load(std::memory_order_acquire);
    if (block == nullptr) return false;
    if (kThreaded && !core.state.try_lock()) return false;
    const bool taken = core.epoch.access <= Access::Lock && target.held_lock == HeldLock::None &&
                       sync::try_lock_as(block->lock, core.exclusive);
    if (taken) {
        target.held_lock = HeldLock::Exclusive;
        core.epoch.access = Access::Lock;
        ++core.epoch.locks;
        target.allow();
    }
    if (kThreaded) core.state.unlock();
    return taken;
}

/// The fast path of MPI_Win_unlock of an exclusive lock without waiters. No: nothing has changed, and the caller uses
/// unlock(). Yes: done. Late: the lock is released, but the caller must call unlock_late(), which also releases the
/// window's state lock.
template <bool kThreaded>
inline sync::Released try_unlock(Core& core, std::uint32_t rank) {
    if (rank >= core.size) return sync::Released::No;
    Target& target = core.targets[rank];
    if (kThreaded && !core.state.try_lock()) return sync::Released::No;
    const sync::Released released = __builtin_expect(target.held_lock == HeldLock::Exclusive, 1)
                                        ? sync::try_unlock_as(target.control().lock, core.exclusive)
                                        : sync::Released::No;
    if (__builtin_expect(released == sync::Released::No, 0)) {
        if (kThreaded) core.state.unlock();
        return released;
    }
    if (__builtin_expect(released != sync::Released::Yes, 0)) return released;
    core.epoch.end_lock(target);
    if (kThreaded) core.state.unlock();
    return sync::Released::Yes;
}
void unlock_late(Core& core, std::uint32_t rank, bool threaded);

/// The fast path of MPI_Win_flush and MPI_Win_flush_local: true if no operation at the target is incomplete, so that
/// the flush needs ordering only. If false, the caller uses flush(). A negative rank converts to a
/// huge number.
inline bool may_order_only(const Core& core, std::uint32_t rank) {
    return shm::below(rank, core.flushable);
}

/// Opens a target for the fast path of operations, on the first operation of an epoch. False if the target is open
/// already or cannot be opened; the general path then reports the fault.
bool opens(Core& core, std::uint32_t rank);

/// Called when the user gets pointers to other processes' memory. libosc does not see loads and stores through them, so
/// from now on an open lock or lock_all holds its locks, and an open start has the posts of this node's targets.
Fault pointers_given(Core& core);

/// Orders this thread's earlier memory accesses before its later ones where a processor may let a later load pass an
/// earlier store around a seq_cst read-modify-write (aarch64 by exclusive loads and stores), or a store pass a store.
/// x86-64 does neither. ThreadSanitizer does not know fences.
inline void fence_if_weak() {
#if !defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Orders this thread's earlier memory accesses before its later ones. On x86-64 it is a read-modify-write alone. The
/// same word counts calls: true once in kPollEvery calls, for the caller to call shm::poll_host(), so that a polling
/// program drives the host.
inline constexpr std::uint32_t kPollEvery = 1024;
[[nodiscard]] inline bool order_and_count(std::atomic<std::uint32_t>& word) {
    const bool due = word.fetch_sub(1, std::memory_order_seq_cst) == 1;
    fence_if_weak();
    return due;
}

/// Drives the host after kPollEvery unlocks, which Core::unlocks counts.
void unlocked_often(Core& core);

/// order_and_count(), and poll_host() when it is due.
void full_order(Core& core);

}  // namespace osc::epoch
