// The MPI lock of one target on a node: one 64-bit word taken by CPU atomics, and a FIFO queue for contention.
//
// Word: bit 62 somebody queues, bit 61 broken (a holder died); the low half: bit 31 exclusive, below it rank + 1 of the
// exclusive holder, or the number of shared holders. Uncontended, a lock is one compare-and-swap, and its release one
// too, or of an exclusive one a store. Who finds the word taken, or others queueing, appends itself to the queue (under
// the guard, a short spin lock) and waits on its own cell; a release that finds the queue bit hands the word over to
// the first waiter, or to all shared waiters at the queue's head. So the lock is fair (FIFO), a hand-over is one store
// and at most one wake, and the state per process and window is one cell.
//
// Cells are numbered: rank + 1 for a process's own, with kAway or kAwayPassing for the two in which the target itself
// stands in the queue for a process of another node, which asks by message. Nobody waits on these: the target's agent
// looks for the answer now and then.
//
// Why no waiter is lost: the queue bit is set and the waiter appended under the guard. A release that sees the bit
// hands over, for which it needs the guard, so it sees the appended waiter. One that does not, because it stores before
// it can see it, leaves a word with the bit and without a holder: whoever waits looks for such a word and hands it over
// itself. While the bit is set nobody takes the word but by hand-over. docs/ARCHITECTURE.md has the whole argument.
#pragma once

#include <bit>
#include <cstdint>

#include "sync/far.h"
#include "transport/shm/control.h"

namespace osc::sync {

inline constexpr std::uint64_t kExclusive = std::uint64_t{1} << 31;
inline constexpr std::uint64_t kQueued = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kBroken = std::uint64_t{1} << 61;
inline constexpr std::uint64_t kCountMask = kExclusive - 1;

enum class LockResult { Granted, HolderDied };

/// One acquisition's view: the slot, who asks, and whom to ask about the dead.
struct LockContext {
    const shm::Slot& slot;
    std::uint32_t me;
    std::uint32_t processes;
    Liveness& liveness;
    bool may_queue = true;  // false: another thread of this process stands in the queue with its only cell
    /// The process holds a part of its lock_all already and asks for one more shared lock. It must not wait behind
    /// exclusive requests, which may wait for what it holds: it joins shared holders past the queue, and behind an
    /// exclusive holder it stands first.
    bool inside_lock_all = false;
    std::uint32_t dead_rank = 0;  // set when a lock returns HolderDied
    /// The process whose thread this is, if not `me`: a target's agent that acts for a process of another node.
    std::uint32_t runner = kMe;
    static constexpr std::uint32_t kMe = ~std::uint32_t{0};
};

inline constexpr std::uint32_t kAway = std::uint32_t{1} << 30;
inline constexpr std::uint32_t kAwayPassing = kAway | std::uint32_t{1} << 29;

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

/// Takes the lock of `target`, waiting as long as it takes; HolderDied if a process died while holding it.
LockResult lock_wait(LockContext& context, std::uint32_t target, LockKind kind);

enum class Asked { Granted, Queued, Broken };

/// For the agent of `target`, on behalf of context.me, a process of another node: takes the lock, or queues for it with
/// the cell for those inside a lock_all or the one for the others, which must not stand in the queue yet.
Asked lock_ask(LockContext& context, std::uint32_t target, LockKind kind);
/// What has become of it. The same context, without waiting.
Asked lock_answered(LockContext& context, std::uint32_t target);

/// The same agent's, now and then while it waits: breaks the lock if a process of the node has died with it.
void break_if_dead(LockContext& context, std::uint32_t target);

/// The same agent's, when `dead`, a process of another node, has died with the lock: nobody gets it any more.
void break_lock_of(LockContext& context, std::uint32_t target, std::uint32_t dead);

/// The same agent's, instead of the release of an exclusive lock that it holds for context.me: gives it to `next`, of
/// another node too, past the queue. All processes of other nodes stand there with one cell; by turns that follow each
/// other they get as many as those of the node, who have one each. False if the lock is broken, or somebody inside a
/// lock_all waits, who must not be passed: then the lock is still to be released, and the cell, if it stands in the
/// queue, stands there for `next`.
bool pass_on(LockContext& context, std::uint32_t target, std::uint32_t next);

/// Hands the word of `target` over to the first in the queue: `held`, by its exclusive holder; otherwise, after a
/// release, if the word is abandoned, for which several may try.
void hand_over(LockContext& context, std::uint32_t target, bool held);

/// A word with somebody in the queue and no holder: for whoever sees it to hand over.
constexpr bool is_abandoned(std::uint64_t word) {
    return (word & (kQueued | kExclusive | kCountMask)) == kQueued;
}

/// Any other value is the half of the word with the queue bit and the broken bit, as the second look found it:
/// released, but a hand_over() is due.
enum class Released : std::uint32_t { Yes = 0, No = 1 };

/// Releases an exclusive lock if nobody waits.
/// Only the half of the word that is the holder's is written, and by a store: at a read-modify-write the processor
/// would wait for all the stores of the epoch. The second look finds who came while this thread did not run between the
/// first and the store; who comes between the store and its becoming visible finds the word abandoned within that
/// moment.
/// The half lies at the word's own address, where ThreadSanitizer too looks for the release.
inline Released try_unlock_as(shm::LockCell& cell, std::uint64_t mine) {
    static_assert(std::endian::native == std::endian::little, "the low half of the word comes first");
    if (cell.word.load(std::memory_order_relaxed) != mine) return Released::No;
    using Half [[gnu::may_alias]] = std::uint32_t;
    auto* const halves = reinterpret_cast<Half*>(&cell.word);
    __atomic_store_n(&halves[0], 0, __ATOMIC_RELEASE);
    const Released released{__atomic_load_n(&halves[1], __ATOMIC_RELAXED)};
    if (released == Released::No) __builtin_unreachable();  // no bit of that half
    return released;
}

inline void unlock_exclusive(LockContext& context, std::uint32_t target) {
    const Released released = try_unlock_as(context.slot.block(target).lock, exclusive_word(context.me));
    if (released != Released::Yes) hand_over(context, target, released == Released::No);
}

inline void unlock_shared(LockContext& context, std::uint32_t target) {
    shm::LockCell& cell = context.slot.block(target).lock;
    const std::uint64_t before = cell.word.fetch_sub(1, std::memory_order_seq_cst);
    if ((before & kQueued) != 0 && (before & kCountMask) == 1) hand_over(context, target, false);
}

}  // namespace osc::sync
