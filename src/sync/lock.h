// The MPI lock of one target on a node: one 64-bit word taken by CPU atomics, and a FIFO queue for contention.
//
// Word: bit 62 the queue is not empty, bit 61 broken (a holder died); the low half: bit 31 exclusive, below it rank + 1
// of the exclusive holder, or the number of shared holders. Without contention an acquisition is one compare-and-swap;
// a release is one atomic subtraction, or one store if the lock is exclusive. A process that finds the word taken, or
// the queue bit set, appends itself to the queue (under the guard, a short spin lock) and waits on its own cell. A
// release that finds the queue bit hands the word over to the first waiter, or to all shared waiters at the queue's
// head. So the lock is fair (FIFO), a hand-over is one store and a wake for each new holder, and the state per process
// and window is one cell.
//
// A cell has a number: rank + 1 for a process's own cell. kProxyWaiter and kBargingProxy mark the target's two proxy
// cells, in which the target queues for a process of another node that requests the lock by message. No thread sleeps
// on a proxy cell: the thread that drives the target's network polls it.
//
// Why no waiter is lost: the waiter sets the queue bit and appends its cell under the guard. A release that sees the
// bit hands over under the guard, so it sees the appended waiter. A release that stores before it can see the bit
// leaves an abandoned word: the queue bit without a holder. Every waiter looks for an abandoned word and hands it over
// itself. While the bit is set, only a hand-over takes the word. docs/ARCHITECTURE.md has the whole argument.
#pragma once

#include <bit>
#include <cstdint>

#include "shm/compare.h"
#include "shm/control.h"
#include "stats/counters.h"
#include "sync/remote_sync.h"

namespace osc::sync {

inline constexpr std::uint64_t kExclusive = std::uint64_t{1} << 31;
inline constexpr std::uint64_t kQueued = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kBroken = std::uint64_t{1} << 61;
inline constexpr std::uint64_t kCountMask = kExclusive - 1;

enum class LockResult { Granted, HolderDied };

/// The arguments of one acquisition: the control table, the requesting process, and the test for dead processes.
struct LockContext {
    const shm::ControlTable& controls;
    std::uint32_t me;
    std::uint32_t processes;
    Liveness& liveness;
    bool may_queue = true;  // false: another thread of this process waits in the queue with the process's only cell
    /// The process holds other locks of its lock_all already and requests one more shared lock. It must not wait behind
    /// exclusive requests, whose processes may wait for the locks it holds: it joins shared holders past the queue, and
    /// behind an exclusive holder it becomes the first waiter.
    bool inside_lock_all = false;
    std::uint32_t dead_rank = 0;  // set when a lock returns HolderDied
    /// The process that runs this code, if not `me`: the target, which acts for a process of another node.
    std::uint32_t runner = kMe;
    stats::Counters* stats = nullptr;  // of the process that runs this code; counts hand-overs
    static constexpr std::uint32_t kMe = ~std::uint32_t{0};
};

inline constexpr std::uint32_t kProxyWaiter = std::uint32_t{1} << 30;
inline constexpr std::uint32_t kBargingProxy = kProxyWaiter | std::uint32_t{1} << 29;

/// The word of a lock that rank `me` holds exclusively.
constexpr std::uint64_t exclusive_word(std::uint32_t me) {
    return kExclusive | (me + 1);
}

/// Tries once, without waiting; the uncontended path. `mine`: exclusive_word() of the caller.
inline bool try_lock_as(shm::LockCell& cell, std::uint64_t mine) {
    std::uint64_t free = 0;
    return cell.word.compare_exchange_strong(free, mine, std::memory_order_acq_rel, std::memory_order_relaxed);
}

inline bool try_lock_exclusive(shm::LockCell& cell, std::uint32_t me) {
    return try_lock_as(cell, exclusive_word(me));
}

inline bool try_lock_shared(shm::LockCell& cell) {
    std::uint64_t seen = cell.word.load(std::memory_order_relaxed);
    while ((seen & (kExclusive | kQueued | kBroken)) == 0)
        if (cell.word.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
            return true;
    return false;
}

/// Acquires the lock of `target` and waits without a limit; HolderDied if a process died while it held the lock.
LockResult lock_wait(LockContext& context, std::uint32_t target, LockKind kind);

/// Called after a long wait, or now and then: breaks the lock if a process of this node has died with it. True, with
/// the process in context.dead_rank, if the lock is broken.
bool break_if_holder_died(LockContext& context, std::uint32_t target);

enum class LockReply { Granted, Queued, Broken };

// The next four functions run in the process `target`, on behalf of context.me, a process of another node. None waits.

/// Acquires the lock, or queues for it with a proxy cell: kBargingProxy if context.inside_lock_all, else kProxyWaiter.
/// That cell must not be queued yet.
LockReply lock_ask(LockContext& context, std::uint32_t target, LockKind kind);
/// The state of that request. The same context.
LockReply lock_answered(LockContext& context, std::uint32_t target);

/// Breaks the lock because `dead`, a process of another node, died with it: no process acquires it any more.
void break_lock_of(LockContext& context, std::uint32_t target, std::uint32_t dead);

/// Instead of releasing an exclusive lock of context.me, passes it past the queue to `next`, also a process of another
/// node. All remote processes share one proxy cell, so with a batch of such grants they get as many turns as the local
/// processes, which have a cell each. False if the lock is broken, or if the first waiter is inside a lock_all and must
/// not be passed. The caller must then still release the lock, and the proxy cell, if it is queued, waits for `next`.
bool hand_off(LockContext& context, std::uint32_t target, std::uint32_t next);

/// Hands the word of `target` over to the first waiter. `by_holder`: the exclusive holder calls. Otherwise the call
/// does nothing unless the word is abandoned, so several processes may call after a release.
void hand_over(LockContext& context, std::uint32_t target, bool by_holder);

/// True if the queue bit is set and no process holds the lock: any process that sees such a word hands it over.
constexpr bool is_abandoned(std::uint64_t word) {
    return (word & (kQueued | kExclusive | kCountMask)) == kQueued;
}

/// Late: the lock is released, but the caller must call hand_over().
enum class Released : std::uint8_t { Yes, No, Late };

/// Releases an exclusive lock unless the queue bit is set.
/// It stores the low half of the word only, which belongs to the holder. A read-modify-write would wait until all
/// stores of the epoch have left the processor's store buffer. The load after the store finds waiters that queued
/// between the first load and the store. A waiter that queues before the store becomes visible finds the word abandoned
/// as soon as it does.
/// The low half lies at the word's own address, which ThreadSanitizer associates with the release.
inline Released try_unlock_as(shm::LockCell& cell, std::uint64_t mine) {
    static_assert(std::endian::native == std::endian::little, "the low half of the word comes first");
    if (cell.word.load(std::memory_order_relaxed) != mine) return Released::No;
    using Half [[gnu::may_alias]] = std::uint32_t;
    auto* const halves = reinterpret_cast<Half*>(&cell.word);
    __atomic_store_n(&halves[0], 0, __ATOMIC_RELEASE);
    return shm::is_zero(halves[1]) ? Released::Yes : Released::Late;
}

inline void unlock_exclusive(LockContext& context, std::uint32_t target) {
    const Released released = try_unlock_as(context.controls.block(target).lock, exclusive_word(context.me));
    if (released != Released::Yes) hand_over(context, target, released == Released::No);
}

inline void unlock_shared(LockContext& context, std::uint32_t target) {
    shm::LockCell& cell = context.controls.block(target).lock;
    const std::uint64_t before = cell.word.fetch_sub(1, std::memory_order_seq_cst);
    if ((before & kQueued) != 0 && (before & kCountMask) == 1) hand_over(context, target, false);
}

}  // namespace osc::sync
