// The contended side of the node lock: queueing, hand-over, dead holders.
#include "sync/lock.h"

#include <sched.h>

#include <ctime>

namespace osc::sync {
namespace {

using shm::ControlBlock;
using shm::LockCell;
using shm::WaitCell;

constexpr std::uint32_t kGranted = 1;  // of WaitCell::answer
constexpr std::uint32_t kRefused = 2;

WaitCell& cell_of(const LockContext& context, std::uint32_t number) {
    if ((number & kAway) == 0) return context.slot.block(number - 1).wait;
    return context.slot.block((number & ~kAwayPassing) - 1).away[(number & kAwayPassing) == kAwayPassing ? 1 : 0];
}

// Breaks the lock of `target`, because `dead` died. Under the guard, so that with the broken bit there is no queue:
// everybody in it is told, and its cell is free to wait elsewhere. The queue's links are not used; they may be half
// written.
void break_lock(LockContext& context, std::uint32_t target, std::uint32_t dead) {
    LockCell& cell = context.slot.block(target).lock;
    std::uint32_t nobody = 0;
    cell.dead.compare_exchange_strong(nobody, dead + 1, std::memory_order_relaxed);
    cell.word.fetch_or(kBroken, std::memory_order_seq_cst);
    cell.head = cell.tail = 0;
    const auto refuse = [&](WaitCell& waiter) {
        if (waiter.target.load(std::memory_order_relaxed) != target + 1) return;
        waiter.target.store(0, std::memory_order_relaxed);
        waiter.answer.exchange(kRefused, std::memory_order_seq_cst);
        waiter.bell.ring();
    };
    for (std::uint32_t place = 0; place < context.slot.count_here(context.processes); ++place)
        refuse(context.slot.block(context.slot.rank_at(place)).wait);
    for (WaitCell& waiter : context.slot.block(target).away)
        refuse(waiter);
}

// Holds a target's queue guard. Critical sections are a few stores, but the holder may be preempted or die.
class Guard {
  public:
    Guard(LockContext& context, std::uint32_t target) : cell_(context.slot.block(target).lock) {
        const std::uint32_t me = context.runner != LockContext::kMe ? context.runner : context.me;
        for (int round = 0; !take(me); ++round) {
            shm::cpu_relax();
            if (round < 100) continue;
            ::sched_yield();
            if (round % 100000 == 0 && take_from_dead(context, target, me)) return;
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
    // The queue of a process that died while editing it cannot be trusted: the lock is broken.
    bool take_from_dead(LockContext& context, std::uint32_t target, std::uint32_t me) {
        std::uint32_t holder = cell_.guard.load(std::memory_order_relaxed);
        const std::uint32_t dead = holder - 1;
        if (holder == 0 || context.liveness.alive(dead)) return false;
        if (!cell_.guard.compare_exchange_strong(holder, me + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
            return false;
        break_lock(context, target, dead);
        return true;
    }
    LockCell& cell_;
};

bool is_free(std::uint64_t word, LockKind kind, bool past_queue) {
    if ((word & (kExclusive | kBroken)) != 0) return false;
    // An abandoned word goes to the head of the queue, where somebody else inside a lock_all may stand.
    if ((word & kQueued) != 0 && (!past_queue || is_abandoned(word))) return false;
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
    for (std::uint32_t place = 0; place < context.slot.count_here(context.processes); ++place) {
        rank = context.slot.rank_at(place);
        const std::uint64_t noted = context.slot.block(rank).shared_locks(target).load(std::memory_order_acquire);
        if ((noted & ControlBlock::bit(target)) != 0 && !context.liveness.alive(rank)) return true;
    }
    return false;
}

// Whether the lock can be held for processes of other nodes, which give it back by the target's thread, and that is
// gone.
bool orphaned(LockContext& context, std::uint32_t target) {
    return context.slot.places != nullptr && target != context.me && target != context.runner &&
           !context.liveness.alive(target);
}

// For who waits: hands over what is abandoned, unless somebody is at the queue, who may be doing that; the next look is
// soon.
void look_after(LockContext& context, std::uint32_t target) {
    const LockCell& cell = context.slot.block(target).lock;
    if (is_abandoned(cell.word.load(std::memory_order_relaxed)) && cell.guard.load(std::memory_order_relaxed) == 0)
        hand_over(context, target, false);
}

// After a long wait: true if the lock is broken, now or before. Who stands in the queue has its answer then, or gets it
// from a hand-over that has taken it out.
bool given_up(LockContext& context, std::uint32_t target) {
    LockCell& cell = context.slot.block(target).lock;
    // Whoever else would hand it over may have died, at the queue too.
    if (is_abandoned(cell.word.load(std::memory_order_relaxed))) hand_over(context, target, false);
    const std::uint64_t word = cell.word.load(std::memory_order_acquire);
    if ((word & kBroken) == 0) {
        std::uint32_t rank = 0;
        if (dead_holder(context, target, word, rank)) {
            // A holder that released the lock before it ended is no reason: the word has moved on.
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

// Nobody will answer this waiter any more: answers are given under the guard, and who took it out of the queue died
// before it answered. The guard's taker has broken the lock then.
bool forgotten(LockContext& context, std::uint32_t target) {
    const Guard guard(context, target);
    const WaitCell& own = context.slot.block(context.me).wait;
    return own.target.load(std::memory_order_relaxed) == 0 && own.answer.load(std::memory_order_relaxed) == 0;
}

bool take_polling(LockContext& context, std::uint32_t target, LockKind kind) {
    LockCell& cell = context.slot.block(target).lock;
    if (!context.inside_lock_all) return take_or_mark(cell, kind, context.me, false);
    const Guard guard(context, target);
    return take_or_mark(cell, kind, context.me, false, true);
}

// Takes the lock, or puts the cell with this number into the queue. Under the guard.
Asked take_or_queue(LockContext& context, std::uint32_t target, LockKind kind, std::uint32_t number) {
    LockCell& cell = context.slot.block(target).lock;
    if ((cell.word.load(std::memory_order_relaxed) & kBroken) != 0) return Asked::Broken;
    if (take_or_mark(cell, kind, context.me, true, context.inside_lock_all)) return Asked::Granted;
    WaitCell& own = cell_of(context, number);
    own.answer.store(0, std::memory_order_relaxed);
    own.target.store(target + 1, std::memory_order_relaxed);
    own.next = 0;
    own.kind = static_cast<std::uint32_t>(kind);
    own.holder = context.me + 1;
    own.passing = context.inside_lock_all ? 1 : 0;
    if (context.inside_lock_all && cell.head != 0) {
        own.next = cell.head;
        cell.head = number;
    } else {
        (cell.tail != 0 ? cell_of(context, cell.tail).next : cell.head) = number;
        cell.tail = number;
    }
    return Asked::Queued;
}

// A second thread of a process whose cell is in use waits by polling: its process keeps one place in the queue.
LockResult poll_for(LockContext& context, std::uint32_t target, LockKind kind) {
    const shm::WaitPolicy policy = shm::wait_policy();
    for (int round = 1;; ++round) {
        if (take_polling(context, target, kind)) return LockResult::Granted;
        look_after(context, target);
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

}  // namespace

LockResult lock_wait(LockContext& context, std::uint32_t target, LockKind kind) {
    LockCell& cell = context.slot.block(target).lock;
    if (!context.may_queue) return poll_for(context, target, kind);
    WaitCell& own = context.slot.block(context.me).wait;
    Asked asked{};
    {
        const Guard guard(context, target);
        asked = take_or_queue(context, target, kind, context.me + 1);
    }
    if (asked == Asked::Granted) return LockResult::Granted;
    if (asked == Asked::Broken) {
        context.dead_rank = cell.dead.load(std::memory_order_relaxed) - 1;
        return LockResult::HolderDied;
    }
    // While it spins it looks at the word now and then only: that is in a line which the others write.
    int spins = shm::wait_policy().spin;
    // Not given up while somebody may still write into the cell. Only a release that was under way when this process
    // queued can leave the word without a ring, so no sleep but the first is for that.
    shm::wait_until(
        own.bell,
        [&] {
            if (own.answer.load(std::memory_order_seq_cst) != 0) return true;
            if (--spins >= 0 && spins % 64 != 0) return false;
            look_after(context, target);
            return own.answer.load(std::memory_order_seq_cst) != 0;
        },
        [&] {
            given_up(context, target);
            return forgotten(context, target);
        },
        shm::FirstSleep::Timed);
    if (own.answer.load(std::memory_order_acquire) == kGranted) return LockResult::Granted;
    context.dead_rank = cell.dead.load(std::memory_order_relaxed) - 1;
    return LockResult::HolderDied;
}

namespace {

std::uint32_t away_number(const LockContext& context, std::uint32_t target) {
    return (context.inside_lock_all ? kAwayPassing : kAway) | (target + 1);
}

}  // namespace

Asked lock_ask(LockContext& context, std::uint32_t target, LockKind kind) {
    const Guard guard(context, target);
    return take_or_queue(context, target, kind, away_number(context, target));
}

// Under the guard nobody is about to answer, so what is not answered and in no queue never will be: see forgotten().
Asked lock_answered(LockContext& context, std::uint32_t target) {
    const WaitCell& own = cell_of(context, away_number(context, target));
    std::uint32_t answer = own.answer.load(std::memory_order_seq_cst);
    if (answer == 0) {
        look_after(context, target);
        if (own.target.load(std::memory_order_relaxed) != 0) return Asked::Queued;
        const Guard guard(context, target);
        answer = own.answer.load(std::memory_order_relaxed);
    }
    return answer == kGranted ? Asked::Granted : Asked::Broken;
}

void break_if_dead(LockContext& context, std::uint32_t target) {
    given_up(context, target);
}

void break_lock_of(LockContext& context, std::uint32_t target, std::uint32_t dead) {
    const Guard guard(context, target);
    break_lock(context, target, dead);
}

bool pass_on(LockContext& context, std::uint32_t target, std::uint32_t next) {
    LockCell& cell = context.slot.block(target).lock;
    const Guard guard(context, target);
    const std::uint64_t word = cell.word.load(std::memory_order_acquire);
    if ((word & kBroken) != 0) return false;
    if (cell.head != 0 && cell_of(context, cell.head).passing != 0) {
        WaitCell& own = cell_of(context, kAway | (target + 1));
        if (own.target.load(std::memory_order_relaxed) == target + 1) {
            own.kind = static_cast<std::uint32_t>(LockKind::Exclusive);
            own.holder = next + 1;
        }
        return false;
    }
    // Held exclusively, the word changes under the guard only.
    cell.word.store(exclusive_word(next) | (word & kQueued), std::memory_order_seq_cst);
    return true;
}

void hand_over(LockContext& context, std::uint32_t target, bool held) {
    LockCell& cell = context.slot.block(target).lock;
    WaitCell* last_granted = nullptr;
    {
        const Guard guard(context, target);
        const std::uint64_t word = cell.word.load(std::memory_order_acquire);
        // Others may have seen the word abandoned too, and given it away: it is not ours to give then.
        if (!held && !is_abandoned(word)) return;
        const std::uint32_t first = cell.head;
        // A broken lock is nobody's any more.
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
        // Nothing can come in between: all else is done under the guard or by the holder, who is here or gone.
        cell.word.store(next, std::memory_order_seq_cst);
        // Answers are given under the guard too, so that a waiter can tell whether its own can still come.
        for (std::uint32_t number = first; number != last;) {
            if (last_granted != nullptr) last_granted->bell.ring();
            last_granted = &cell_of(context, number);
            number = last_granted->next;
            last_granted->target.store(0, std::memory_order_relaxed);
            last_granted->answer.exchange(kGranted, std::memory_order_seq_cst);
        }
    }
    last_granted->bell.ring();  // most often the only one: woken outside the guard, which it may want at once
}

}  // namespace osc::sync
