// The contended side of the node lock: queueing, hand-over, dead holders.
#include "sync/lock.h"

#include <sched.h>

#include <ctime>

#include "base/assert.h"
#include "base/wait_time.h"
#include "shm/section_wait.h"

namespace osc::sync {
namespace {

using shm::ControlBlock;
using shm::LockCell;
using shm::WaitCell;

constexpr std::uint32_t kGranted = 1;  // of WaitCell::answer
constexpr std::uint32_t kRefused = 2;

WaitCell& cell_of(const LockContext& context, std::uint32_t number) {
    if ((number & kProxyWaiter) == 0) return context.controls.block(number - 1).wait;
    return context.controls.block((number & ~kBargingProxy) - 1)
        .proxies[(number & kBargingProxy) == kBargingProxy ? 1 : 0];
}

std::uint32_t proxy_number(const LockContext& context, std::uint32_t target) {
    return (context.inside_lock_all ? kBargingProxy : kProxyWaiter) | (target + 1);
}

// Breaks the lock of `target`, because `dead` died. The caller holds the guard. Every waiter gets the answer kRefused,
// and its cell is free for another lock: a broken lock has no queue. The waiters are found by their cells and not by
// the queue's links, which the dead process may have left half written.
void break_lock(LockContext& context, std::uint32_t target, std::uint32_t dead) {
    LockCell& cell = context.controls.block(target).lock;
    std::uint32_t none = 0;
    cell.dead.compare_exchange_strong(none, dead + 1, std::memory_order_relaxed);
    cell.word.fetch_or(kBroken, std::memory_order_seq_cst);
    cell.head = cell.tail = 0;
    const auto refuse = [&](WaitCell& waiter) {
        if (waiter.target.load(std::memory_order_relaxed) != target + 1) return;
        waiter.target.store(0, std::memory_order_relaxed);
        waiter.answer.exchange(kRefused, std::memory_order_seq_cst);
        waiter.bell.ring();
    };
    for (std::uint32_t index = 0; index < context.controls.local_count(context.processes); ++index)
        refuse(context.controls.block(context.controls.rank_at(index)).wait);
    for (WaitCell& waiter : context.controls.block(target).proxies)
        refuse(waiter);
}

// Takes the guard of a target's queue. Critical sections are a few stores, but the holder may be preempted or die.
class Guard {
  public:
    Guard(LockContext& context, std::uint32_t target)
        : cell_(context.controls.block(target).lock),
          me_(context.runner != LockContext::kMe ? context.runner : context.me) {
        for (shm::SectionWait wait; !take();)
            if (wait.pause() && take_from_dead(context, target)) return;
    }
    ~Guard() {
        OSC_ASSERT(cell_.guard.load(std::memory_order_relaxed) == me_ + 1);
        cell_.guard.store(0, std::memory_order_release);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    bool take() {
        std::uint32_t free = 0;
        return cell_.guard.compare_exchange_weak(free, me_ + 1, std::memory_order_acquire, std::memory_order_relaxed);
    }
    // The queue of a process that died while editing it cannot be trusted: the lock is broken.
    bool take_from_dead(LockContext& context, std::uint32_t target) {
        std::uint32_t holder = cell_.guard.load(std::memory_order_relaxed);
        const std::uint32_t dead = holder - 1;
        if (holder == 0 || context.liveness.alive(dead)) return false;
        if (!cell_.guard.compare_exchange_strong(holder, me_ + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
            return false;
        break_lock(context, target, dead);
        return true;
    }
    LockCell& cell_;
    const std::uint32_t me_;
};

// Under the guard: the queue's cells wait for this target, have no answer yet, and end with the tail; the word has the
// queue bit if a cell stands in the queue. A broken lock has no queue.
[[maybe_unused]] bool queue_is_whole(const LockContext& context, std::uint32_t target) {
    const LockCell& cell = context.controls.block(target).lock;
    const std::uint64_t word = cell.word.load(std::memory_order_relaxed);
    if ((word & kBroken) != 0) return cell.head == 0;
    if (cell.head == 0) return true;
    std::uint32_t last = 0;
    std::uint32_t length = 0;
    for (std::uint32_t number = cell.head; number != 0; number = cell_of(context, number).next) {
        const WaitCell& waiter = cell_of(context, number);
        if (waiter.target.load(std::memory_order_relaxed) != target + 1) return false;
        if (waiter.answer.load(std::memory_order_relaxed) != 0) return false;
        if (++length > context.processes + 2) return false;
        last = number;
    }
    return last == cell.tail && (word & kQueued) != 0;
}

bool is_free(std::uint64_t word, LockKind kind, bool past_queue) {
    if ((word & (kExclusive | kBroken)) != 0) return false;
    // An abandoned word goes to the queue's head, which may be another process inside a lock_all.
    if ((word & kQueued) != 0 && (!past_queue || is_abandoned(word))) return false;
    return kind == LockKind::Shared || (word & kCountMask) == 0;
}

std::uint64_t taken(std::uint64_t word, LockKind kind, std::uint32_t rank) {
    return kind == LockKind::Shared ? word + 1 : exclusive_word(rank);
}

// Takes the word, or sets the queue bit if `mark`. A caller that sets the bit or passes the queue holds the guard,
// because a hand-over relies on being the only one to take a word with the bit.
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

// Whether a holder of the lock is dead; `rank` names it. `word`: the lock word after a long wait.
bool dead_holder(LockContext& context, std::uint32_t target, std::uint64_t word, std::uint32_t& rank) {
    if ((word & kExclusive) != 0) {
        rank = static_cast<std::uint32_t>(word & kCountMask) - 1;
        return rank < context.processes && !context.liveness.alive(rank);
    }
    for (std::uint32_t index = 0; index < context.controls.local_count(context.processes); ++index) {
        rank = context.controls.rank_at(index);
        const std::uint64_t noted = context.controls.block(rank).shared_locks(target).load(std::memory_order_acquire);
        if ((noted & ControlBlock::bit(target)) != 0 && !context.liveness.alive(rank)) return true;
    }
    return false;
}

// Whether processes of other nodes may hold the lock while the target, which executes their releases, is dead.
bool orphaned(LockContext& context, std::uint32_t target) {
    return context.controls.local_ranks != nullptr && target != context.me && target != context.runner &&
           !context.liveness.alive(target);
}

// Called by waiters: hands an abandoned word over. If the guard is taken, another process may be doing so, and this one
// tries again at its next poll.
void rescue_abandoned(LockContext& context, std::uint32_t target) {
    const LockCell& cell = context.controls.block(target).lock;
    if (is_abandoned(cell.word.load(std::memory_order_relaxed)) && cell.guard.load(std::memory_order_relaxed) == 0)
        hand_over(context, target, false);
}

// True if no process will answer this waiter. Answers are given under the guard, so a process that removed the waiter
// from the queue without an answer has died; the next taker of the guard has then broken the lock.
bool forgotten(LockContext& context, std::uint32_t target) {
    const Guard guard(context, target);
    const WaitCell& own = context.controls.block(context.me).wait;
    return own.target.load(std::memory_order_relaxed) == 0 && own.answer.load(std::memory_order_relaxed) == 0;
}

bool take_polling(LockContext& context, std::uint32_t target, LockKind kind) {
    LockCell& cell = context.controls.block(target).lock;
    if (!context.inside_lock_all) return take_or_mark(cell, kind, context.me, false);
    const Guard guard(context, target);
    return take_or_mark(cell, kind, context.me, false, true);
}

// Takes the lock, or appends the cell with this number to the queue. The caller holds the guard.
LockReply take_or_queue(LockContext& context, std::uint32_t target, LockKind kind, std::uint32_t number) {
    LockCell& cell = context.controls.block(target).lock;
    if ((cell.word.load(std::memory_order_relaxed) & kBroken) != 0) return LockReply::Broken;
    if (take_or_mark(cell, kind, context.me, true, context.inside_lock_all)) return LockReply::Granted;
    WaitCell& own = cell_of(context, number);
    own.answer.store(0, std::memory_order_relaxed);
    own.target.store(target + 1, std::memory_order_relaxed);
    own.next = 0;
    own.kind = static_cast<std::uint32_t>(kind);
    own.holder = context.me + 1;
    own.inside_lock_all = context.inside_lock_all ? 1 : 0;
    if (context.inside_lock_all && cell.head != 0) {
        own.next = cell.head;
        cell.head = number;
    } else {
        (cell.tail != 0 ? cell_of(context, cell.tail).next : cell.head) = number;
        cell.tail = number;
    }
    return LockReply::Queued;
}

// A second thread of a process polls while the first one waits with the process's cell.
LockResult poll_for(LockContext& context, std::uint32_t target, LockKind kind) {
    const base::TimedWait waits;
    const shm::WaitPolicy policy = shm::wait_policy();
    for (int round = 1;; ++round) {
        if (take_polling(context, target, kind)) return LockResult::Granted;
        rescue_abandoned(context, target);
        if (policy.progress != nullptr) policy.progress();
        if (round <= policy.yields) {
            ::sched_yield();
            continue;
        }
        const timespec pause{0, 1000000};  // no release wakes this thread
        ::nanosleep(&pause, nullptr);
        if (round % 100 == 0 && break_if_holder_died(context, target)) return LockResult::HolderDied;
    }
}

}  // namespace

LockResult lock_wait(LockContext& context, std::uint32_t target, LockKind kind) {
    LockCell& cell = context.controls.block(target).lock;
    if (!context.may_queue) return poll_for(context, target, kind);
    WaitCell& own = context.controls.block(context.me).wait;
    LockReply reply{};
    {
        const Guard guard(context, target);
        reply = take_or_queue(context, target, kind, context.me + 1);
    }
    if (reply == LockReply::Granted) return LockResult::Granted;
    if (reply == LockReply::Broken) {
        context.dead_rank = cell.dead.load(std::memory_order_relaxed) - 1;
        return LockResult::HolderDied;
    }
    // A spinning waiter reads the word in every 64th round only, because other processes write its cache line.
    int spins = shm::wait_policy().spin;
    // The wait does not end while a process may still write into the cell. Only a release that overlapped with the
    // queueing of this process can abandon the word without ringing the bell, so only the first sleep is timed.
    shm::wait_until(
        own.bell,
        [&] {
            if (own.answer.load(std::memory_order_seq_cst) != 0) return true;
            if (--spins >= 0 && spins % 64 != 0) return false;
            rescue_abandoned(context, target);
            return own.answer.load(std::memory_order_seq_cst) != 0;
        },
        [&] {
            break_if_holder_died(context, target);
            return forgotten(context, target);
        },
        shm::FirstSleep::Timed);
    if (own.answer.load(std::memory_order_acquire) == kGranted) return LockResult::Granted;
    context.dead_rank = cell.dead.load(std::memory_order_relaxed) - 1;
    return LockResult::HolderDied;
}

LockReply lock_ask(LockContext& context, std::uint32_t target, LockKind kind) {
    const Guard guard(context, target);
    return take_or_queue(context, target, kind, proxy_number(context, target));
}

// A request that is neither answered nor queued while this process holds the guard gets no answer any more; see
// forgotten().
LockReply lock_answered(LockContext& context, std::uint32_t target) {
    const WaitCell& own = cell_of(context, proxy_number(context, target));
    std::uint32_t answer = own.answer.load(std::memory_order_seq_cst);
    if (answer == 0) {
        rescue_abandoned(context, target);
        if (own.target.load(std::memory_order_relaxed) != 0) return LockReply::Queued;
        const Guard guard(context, target);
        answer = own.answer.load(std::memory_order_relaxed);
    }
    return answer == kGranted ? LockReply::Granted : LockReply::Broken;
}

// Each waiter in the queue of a broken lock has its answer, or gets it from a hand-over that has already removed it
// from the queue.
bool break_if_holder_died(LockContext& context, std::uint32_t target) {
    LockCell& cell = context.controls.block(target).lock;
    // Without asking for the guard first: the process that holds it may have died.
    if (is_abandoned(cell.word.load(std::memory_order_relaxed))) hand_over(context, target, false);
    const std::uint64_t word = cell.word.load(std::memory_order_acquire);
    if ((word & kBroken) == 0) {
        std::uint32_t rank = 0;
        if (dead_holder(context, target, word, rank)) {
            // The holder released the lock before it died if the word has changed.
            if ((word & kExclusive) != 0 && cell.word.load(std::memory_order_acquire) != word) return false;
        } else {
            if (!orphaned(context, target)) return false;
            rank = target;
        }
        const Guard guard(context, target);
        break_lock(context, target, rank);
    }
    context.dead_rank = cell.dead.load(std::memory_order_relaxed) - 1;
    return true;
}

void break_lock_of(LockContext& context, std::uint32_t target, std::uint32_t dead) {
    const Guard guard(context, target);
    break_lock(context, target, dead);
}

bool hand_off(LockContext& context, std::uint32_t target, std::uint32_t next) {
    LockCell& cell = context.controls.block(target).lock;
    const Guard guard(context, target);
    const std::uint64_t word = cell.word.load(std::memory_order_acquire);
    if ((word & kBroken) != 0) return false;
    if (cell.head != 0 && cell_of(context, cell.head).inside_lock_all != 0) {
        WaitCell& own = cell_of(context, kProxyWaiter | (target + 1));
        if (own.target.load(std::memory_order_relaxed) == target + 1) {
            own.kind = static_cast<std::uint32_t>(LockKind::Exclusive);
            own.holder = next + 1;
        }
        return false;
    }
    OSC_ASSERT((word & kExclusive) != 0);
    OSC_ASSERT_SLOW(queue_is_whole(context, target));
    if (context.stats != nullptr) context.stats->other(stats::Other::LockHandOvers);
    // Only a thread with the guard changes the word of an exclusive lock.
    cell.word.store(exclusive_word(next) | (word & kQueued), std::memory_order_seq_cst);
    return true;
}

void hand_over(LockContext& context, std::uint32_t target, bool by_holder) {
    LockCell& cell = context.controls.block(target).lock;
    WaitCell* last_granted = nullptr;
    {
        const Guard guard(context, target);
        const std::uint64_t word = cell.word.load(std::memory_order_acquire);
        OSC_ASSERT_SLOW(queue_is_whole(context, target));
        // Another process may have seen the abandoned word too and handed it over already.
        if (!by_holder && !is_abandoned(word)) return;
        const std::uint32_t first = cell.head;
        // A broken lock keeps the broken bit only.
        if (first == 0 || (word & kBroken) != 0) {
            cell.word.fetch_and(kBroken, std::memory_order_seq_cst);
            return;
        }
        std::uint64_t next = 0;
        std::uint32_t last = first;
        const WaitCell& waiter = cell_of(context, first);
        if (waiter.kind == static_cast<std::uint32_t>(LockKind::Exclusive)) {
            next = kExclusive | waiter.holder;
            last = waiter.next;
        } else {
            while (last != 0 && cell_of(context, last).kind == static_cast<std::uint32_t>(LockKind::Shared)) {
                ++next;
                last = cell_of(context, last).next;
            }
        }
        cell.head = last;
        if (last == 0) cell.tail = 0;
        next |= last != 0 ? kQueued : 0;
        // No other process changes the word now: that needs the guard, or the lock, which this process holds or which
        // no process holds.
        cell.word.store(next, std::memory_order_seq_cst);
        if (context.stats != nullptr) context.stats->other(stats::Other::LockHandOvers);
        // Answers are given under the guard too, so that forgotten() can decide whether one may still come.
        for (std::uint32_t number = first; number != last;) {
            if (last_granted != nullptr) last_granted->bell.ring();
            last_granted = &cell_of(context, number);
            number = last_granted->next;
            last_granted->target.store(0, std::memory_order_relaxed);
            last_granted->answer.exchange(kGranted, std::memory_order_seq_cst);
        }
    }
    if (last_granted != nullptr)
        last_granted->bell
            .ring();  // outside the guard, which the woken process may take at once; often the only waiter
}

}  // namespace osc::sync
