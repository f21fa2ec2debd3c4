// The contended side of the node lock: queueing, hand-over, dead holders.
#include "sync/lock.h"

#include <sched.h>

#include <ctime>

namespace osc::sync {
namespace {

using shm::ControlBlock;
using shm::LockCell;
using shm::WaitCell;

// Holds a target's queue guard. Critical sections are a few stores, but the holder may be preempted or die.
class Guard {
  public:
    Guard(LockContext& context, LockCell& cell) : cell_(cell) {
        for (int round = 0; !take(context.me); ++round) {
            shm::cpu_relax();
            if (round < 100) continue;
            ::sched_yield();
            if (round % 100000 == 0) break_if_dead(context);
        }
    }
    ~Guard() { cell_.guard.store(0, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    bool take(std::uint32_t me) {
        std::uint32_t free = 0;
        return cell_.guard.compare_exchange_weak(free, me + 1, std::memory_order_acquire, std::memory_order_relaxed);
    }
    // The queue of a process that died while editing it cannot be trusted: the lock is broken, the guard is free.
    void break_if_dead(LockContext& context) {
        std::uint32_t holder = cell_.guard.load(std::memory_order_relaxed);
        if (holder == 0 || context.liveness.alive(holder - 1)) return;
        cell_.word.fetch_or(kBroken, std::memory_order_seq_cst);
        cell_.head = cell_.tail = 0;
        cell_.guard.compare_exchange_strong(holder, 0, std::memory_order_acq_rel, std::memory_order_relaxed);
    }
    LockCell& cell_;
};

bool is_free(std::uint64_t word, LockKind kind, bool past_queue) {
    if ((word & (kExclusive | kBroken)) != 0) return false;
    if ((word & kQueued) != 0 && !past_queue) return false;
    return kind == LockKind::Shared || (word & kCountMask) == 0;
}

std::uint64_t taken(std::uint64_t word, LockKind kind, std::uint32_t rank) {
    return kind == LockKind::Shared ? word + 1 : exclusive_word(rank);
}

// Takes the word, or sets the queue bit; under the guard when it may set the bit or pass the queue, because a hand-over
// trusts that nobody else takes a word with the bit.
bool take_or_mark(LockCell& cell, LockKind kind, std::uint32_t me, bool mark, bool past_queue = false) {
    std::uint64_t word = cell.word.load(std::memory_order_relaxed);
    for (;;) {
        const bool free = is_free(word, kind, past_queue);
        if (!free && !mark) return false;
        const std::uint64_t next = free ? taken(word, kind, me) : word | kQueued;
        if (cell.word.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_relaxed))
            return free;
    }
}

// The rank whose death explains why the lock is held, if any. `word` as seen after a long wait.
bool dead_holder(LockContext& context, std::uint32_t target, std::uint64_t word, std::uint32_t& rank) {
    if ((word & kExclusive) != 0) {
        rank = static_cast<std::uint32_t>(word & kCountMask) - 1;
        return rank < context.processes && !context.liveness.alive(rank);
    }
    for (rank = 0; rank < context.processes; ++rank) {
        const std::uint64_t noted = context.slot.block(rank).shared_locks(target).load(std::memory_order_acquire);
        if ((noted & ControlBlock::bit(target)) != 0 && !context.liveness.alive(rank)) return true;
    }
    return false;
}

// After a long wait: true if the lock can never be granted.
bool given_up(LockContext& context, std::uint32_t target) {
    LockCell& cell = context.slot.block(target).lock;
    const std::uint64_t word = cell.word.load(std::memory_order_acquire);
    std::uint32_t rank = 0;
    // A holder that released the lock before it ended is no reason: the word has moved on.
    const bool found = dead_holder(context, target, word, rank) &&
                       ((word & kExclusive) == 0 || cell.word.load(std::memory_order_acquire) == word);
    if (found) {
        context.dead_rank = rank;
        cell.word.fetch_or(kBroken, std::memory_order_seq_cst);
    }
    return found || (word & kBroken) != 0;
}

bool take_polling(LockContext& context, LockCell& cell, LockKind kind) {
    if (!context.inside_lock_all) return take_or_mark(cell, kind, context.me, false);
    const Guard guard(context, cell);
    return take_or_mark(cell, kind, context.me, false, true);
}

// A second thread of a process whose cell is in use waits by polling: its process keeps one place in the queue.
LockResult poll_for(LockContext& context, std::uint32_t target, LockKind kind) {
    LockCell& cell = context.slot.block(target).lock;
    const shm::WaitPolicy& policy = shm::wait_policy();
    for (int round = 1;; ++round) {
        if (take_polling(context, cell, kind)) return LockResult::Granted;
        if (policy.progress != nullptr) policy.progress();
        if (round <= policy.yields) {
            ::sched_yield();
            continue;
        }
        const timespec nap{0, 1000000};  // nobody wakes this thread
        ::nanosleep(&nap, nullptr);
        if (round % 100 == 0 && given_up(context, target)) return LockResult::HolderDied;
    }
}

// Releases a lock whose queue is of no use: empty, or of a lock that broke.
void drop_queue(LockCell& cell) {
    cell.head = cell.tail = 0;
    cell.word.fetch_and(kBroken, std::memory_order_seq_cst);
}

}  // namespace

LockResult lock_wait(LockContext& context, std::uint32_t target, LockKind kind) {
    LockCell& cell = context.slot.block(target).lock;
    if ((cell.word.load(std::memory_order_relaxed) & kBroken) != 0 && given_up(context, target))
        return LockResult::HolderDied;
    if (!context.may_queue) return poll_for(context, target, kind);
    WaitCell& own = context.slot.block(context.me).wait;
    {
        const Guard guard(context, cell);
        if (take_or_mark(cell, kind, context.me, true, context.inside_lock_all)) return LockResult::Granted;
        own.granted.store(0, std::memory_order_relaxed);
        own.next = 0;
        own.kind = static_cast<std::uint32_t>(kind);
        if (context.inside_lock_all && cell.head != 0) {
            own.next = cell.head;
            cell.head = context.me + 1;
        } else {
            if (cell.tail != 0)
                context.slot.block(cell.tail - 1).wait.next = context.me + 1;
            else
                cell.head = context.me + 1;
            cell.tail = context.me + 1;
        }
    }
    const bool granted = shm::wait_until(
        own.bell, [&] { return own.granted.load(std::memory_order_seq_cst) != 0; },
        [&] { return given_up(context, target); });
    return granted ? LockResult::Granted : LockResult::HolderDied;
}

void hand_over(LockContext& context, std::uint32_t target, LockKind kind) {
    LockCell& cell = context.slot.block(target).lock;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    {
        const Guard guard(context, cell);
        const std::uint64_t word = cell.word.load(std::memory_order_acquire);
        // After the last shared holder's release another one may have come past the queue (it hands over when it goes),
        // or have come and gone and handed over already: then the word is another's, or free, and not ours to give.
        if (kind == LockKind::Shared && (word & (kExclusive | kQueued | kCountMask)) != kQueued) return;
        first = cell.head;
        // A broken lock is nobody's any more: those who wait find that out, and their cells must stay free for others.
        if (first == 0 || (word & kBroken) != 0) {
            drop_queue(cell);
            return;
        }
        std::uint64_t next = 0;
        const WaitCell* waiter = &context.slot.block(first - 1).wait;
        if (waiter->kind == static_cast<std::uint32_t>(LockKind::Exclusive)) {
            next = kExclusive | first;
            last = waiter->next;
        } else {
            last = first;
            while (last != 0 &&
                   context.slot.block(last - 1).wait.kind == static_cast<std::uint32_t>(LockKind::Shared)) {
                ++next;
                last = context.slot.block(last - 1).wait.next;
            }
        }
        cell.head = last;
        if (last == 0) cell.tail = 0;
        next |= last != 0 ? kQueued : 0;
        // Only the broken bit can come in between: all else is done under the guard or by the holder, who is here.
        std::uint64_t seen = cell.word.load(std::memory_order_relaxed);
        do {
            if ((seen & kBroken) != 0) {
                drop_queue(cell);
                return;
            }
        } while (!cell.word.compare_exchange_weak(seen, next, std::memory_order_seq_cst, std::memory_order_relaxed));
    }
    for (std::uint32_t rank = first; rank != last;) {
        WaitCell& waiter = context.slot.block(rank - 1).wait;
        rank = waiter.next;  // read before the grant: a granted waiter may queue again at once
        waiter.granted.fetch_add(1, std::memory_order_seq_cst);
        waiter.bell.ring();
    }
}

}  // namespace osc::sync
