// The node lock by ranks as threads: exclusion, fairness, hand-over without a lost wake-up.
// Level: gate
#include <algorithm>
#include <random>

#include "sync/lock.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

using sync::LockKind;
using sync::LockResult;

void take(sync::LockContext& context, std::uint32_t target, LockKind kind) {
    shm::LockCell& cell = context.controls.block(target).lock;
    const bool got =
        kind == LockKind::Exclusive ? sync::try_lock_exclusive(cell, context.me) : sync::try_lock_shared(cell);
    if (!got) {
        ASSERT_EQ(sync::lock_wait(context, target, kind), LockResult::Granted);
    }
}

void give(sync::LockContext& context, std::uint32_t target, LockKind kind) {
    if (kind == LockKind::Exclusive) {
        sync::unlock_exclusive(context, target);
    } else {
        sync::unlock_shared(context, target);
    }
}

// Plain data that the lock guards: two counters that writers keep equal. ThreadSanitizer reports any missing order. The
// test's own atomics are relaxed, so that they add no order.
struct Guarded {
    long first = 0;
    long second = 0;
    std::atomic<int> readers{0};
    std::atomic<int> most_readers{0};
    std::atomic<int> writers{0};

    void write() {
        EXPECT_EQ(writers.fetch_add(1, std::memory_order_relaxed), 0);
        EXPECT_EQ(readers.load(std::memory_order_relaxed), 0);
        ++first;
        ++second;
        writers.fetch_sub(1, std::memory_order_relaxed);
    }
    void read() {
        const int now = readers.fetch_add(1, std::memory_order_relaxed) + 1;
        int most = most_readers.load(std::memory_order_relaxed);
        while (now > most && !most_readers.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
        }
        EXPECT_EQ(writers.load(std::memory_order_relaxed), 0);
        EXPECT_EQ(first, second);
        readers.fetch_sub(1, std::memory_order_relaxed);
    }
};

// `pollers` wait outside the queue; `passers` acquire shared locks only, past the queue.
void mixed_kinds(int rounds, const std::vector<std::uint32_t>& pollers,
                 const std::vector<std::uint32_t>& passers = {}) {
    const auto among = [](const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
        return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    };
    Ranks ranks(8);
    Guarded guarded;
    std::atomic<long> writes{0};
    ranks.run([&](RankCore& core) {
        sync::LockContext context = ranks.context(core.me);
        context.may_queue = !among(pollers, core.me);
        context.inside_lock_all = among(passers, core.me);
        std::minstd_rand random(core.me + 1);
        for (int i = 0; i < rounds; ++i) {
            const bool shared = context.inside_lock_all || random() % 3 != 0;
            const LockKind kind = shared ? LockKind::Shared : LockKind::Exclusive;
            take(context, 0, kind);
            if (kind == LockKind::Exclusive) {
                guarded.write();
                writes.fetch_add(1, std::memory_order_relaxed);
            } else {
                guarded.read();
            }
            if (random() % 64 == 0) std::this_thread::yield();
            give(context, 0, kind);
        }
    });
    EXPECT_EQ(guarded.first, writes.load());
    EXPECT_EQ(ranks.lock_cell(0).word.load(), 0u);
    EXPECT_EQ(ranks.lock_cell(0).head, 0u);
    EXPECT_EQ(ranks.lock_cell(0).tail, 0u);
}

TEST(NodeLock, WritersExcludeAllAndReadersExcludeWriters) {
    const Deadline deadline(120);
    const Waiting waiting(20, 50, 10);
    mixed_kinds(times(10000, 2000), {});
}

TEST(NodeLock, SleepingWaitersExcludeAsWell) {
    const Deadline deadline(120);
    const Waiting waiting(0, 0, 10);
    mixed_kinds(times(10000, 2000), {});
}

TEST(NodeLock, WaitersOutsideTheQueueExcludeAsWell) {
    const Deadline deadline(120);
    const Waiting waiting(50, 5, 1);
    mixed_kinds(times(2000, 300), {1, 5, 6});
}

TEST(NodeLock, AProcessThatPassesTheQueueExcludesWritersToo) {
    const Deadline deadline(120);
    const Waiting waiting(20, 50, 10);
    mixed_kinds(times(10000, 2000), {1, 2}, {2, 4, 7});
}

// A release stops before its hand-over, or cannot see the queue bit yet: the waiter hands over to itself. The late
// hand-over must then have no effect.
TEST(NodeLock, WaiterTakesAnAbandonedLock) {
    const Deadline deadline(60);
    for (const LockKind kind : {LockKind::Shared, LockKind::Exclusive}) {
        Ranks ranks(3);
        shm::LockCell& cell = ranks.lock_cell(0);
        sync::LockContext first = ranks.context(1);
        take(first, 0, kind);
        std::atomic<bool> writing{false};
        std::atomic<bool> done{false};
        std::thread writer([&] {
            sync::LockContext context = ranks.context(2);
            EXPECT_EQ(sync::lock_wait(context, 0, LockKind::Exclusive), LockResult::Granted);
            writing.store(true);
            while (!done.load())
                std::this_thread::yield();
            sync::unlock_exclusive(context, 0);
        });
        ranks.await_queued(0, 2);
        cell.word.fetch_and(sync::kQueued);
        while (!writing.load())
            std::this_thread::yield();
        sync::hand_over(first, 0, false);
        EXPECT_EQ(cell.word.load(), sync::kExclusive | 3);
        done.store(true);
        writer.join();
        EXPECT_EQ(cell.word.load(), 0u);
        sync::hand_over(first, 0, false);
        EXPECT_EQ(cell.word.load(), 0u);
    }
}

// Rank 1 holds the lock exclusively and rank 3's agent has asked for it; then the word is abandoned.
sync::LockContext left_to_agent(Ranks& ranks, LockKind kind, bool inside_lock_all) {
    sync::LockContext holder = ranks.context(1);
    take(holder, 0, LockKind::Exclusive);
    sync::LockContext away = ranks.context(3);
    away.runner = 0;
    away.inside_lock_all = inside_lock_all;
    EXPECT_EQ(sync::lock_ask(away, 0, kind), sync::LockReply::Queued);
    EXPECT_EQ(sync::lock_answered(away, 0), sync::LockReply::Queued);
    ranks.lock_cell(0).word.fetch_and(sync::kQueued);
    return away;
}

// A request for a remote process does not wait: the target hands an abandoned lock over when it polls for the answer. A
// process that may pass the queue does not take an abandoned lock from the queue's head: if that one is inside a
// lock_all too, both acquire it.
TEST(NodeLock, AgentTakesAFreeLockAndIsNotPassed) {
    const Deadline deadline(60);
    Ranks ranks(4);
    shm::LockCell& cell = ranks.lock_cell(0);
    sync::LockContext away = left_to_agent(ranks, LockKind::Shared, true);
    sync::LockContext passer = ranks.context(2);
    passer.inside_lock_all = true;
    EXPECT_EQ(sync::lock_wait(passer, 0, LockKind::Shared), LockResult::Granted);
    EXPECT_EQ(sync::lock_answered(away, 0), sync::LockReply::Granted);
    EXPECT_EQ(cell.word.load(), 2u);
    sync::unlock_shared(passer, 0);
    sync::unlock_shared(away, 0);
    EXPECT_EQ(cell.word.load(), 0u);

    sync::LockContext again = left_to_agent(ranks, LockKind::Shared, true);
    EXPECT_EQ(sync::lock_answered(again, 0), sync::LockReply::Granted);
    sync::unlock_shared(again, 0);
}

// The second load of a release finds a queue bit that was set after the first load. The hand-over then grants the lock
// to the waiter, which has not polled.
TEST(NodeLock, ReleaseKeepsTheQueueBit) {
    Ranks ranks(4);
    shm::LockCell& cell = ranks.lock_cell(0);
    const std::uint64_t mine = sync::exclusive_word(1);
    EXPECT_TRUE(sync::try_lock_as(cell, mine));
    sync::LockContext away = ranks.context(3);
    away.runner = 0;
    EXPECT_EQ(sync::lock_ask(away, 0, LockKind::Exclusive), sync::LockReply::Queued);
    EXPECT_EQ(sync::try_unlock_as(cell, mine), sync::Released::No);
    EXPECT_EQ(cell.word.load(), mine | sync::kQueued);
    const sync::Released released = sync::try_unlock_as(cell, mine | sync::kQueued);
    EXPECT_NE(released, sync::Released::Yes);
    EXPECT_NE(released, sync::Released::No);
    EXPECT_EQ(cell.word.load(), sync::kQueued);
    ranks.core(1).epoch.access = Access::Lock;
    ranks.core(1).epoch.locks = 1;
    ranks.core(1).target(0).held_lock = HeldLock::Exclusive;
    epoch::unlock_late(ranks.core(1), 0, false);
    EXPECT_EQ(cell.word.load(), sync::exclusive_word(3));
    EXPECT_EQ(sync::lock_answered(away, 0), sync::LockReply::Granted);
    sync::unlock_exclusive(away, 0);
    EXPECT_EQ(cell.word.load(), 0u);
}

// A poller outside the queue hands an abandoned lock over too, because the waiters in the queue may be dead.
TEST(NodeLock, PollerHandsOverAnAbandonedLock) {
    const Deadline deadline(60);
    Ranks ranks(4);
    shm::LockCell& cell = ranks.lock_cell(0);
    sync::LockContext away = left_to_agent(ranks, LockKind::Exclusive, false);
    std::thread poller([&] {
        sync::LockContext context = ranks.context(2);
        context.may_queue = false;
        EXPECT_EQ(sync::lock_wait(context, 0, LockKind::Exclusive), LockResult::Granted);
        sync::unlock_exclusive(context, 0);
    });
    while (cell.word.load() != sync::exclusive_word(3))
        std::this_thread::yield();
    sync::unlock_exclusive(away, 0);
    poller.join();
    EXPECT_EQ(cell.word.load(), 0u);
}

// Inside a lock_all a process joins shared holders although a writer waits. Behind an exclusive holder it becomes the
// first waiter.
TEST(NodeLock, InsideLockAllAProcessDoesNotWaitBehindWriters) {
    const Deadline deadline(60);
    Ranks ranks(4);
    shm::LockCell& cell = ranks.lock_cell(0);
    sync::LockContext first = ranks.context(1);
    take(first, 0, LockKind::Exclusive);
    std::atomic<int> order{0};
    std::thread writer([&] {
        sync::LockContext context = ranks.context(2);
        EXPECT_EQ(sync::lock_wait(context, 0, LockKind::Exclusive), LockResult::Granted);
        EXPECT_EQ(order.fetch_add(1), 1);
        sync::unlock_exclusive(context, 0);
    });
    ranks.await_queued(0, 2);
    std::thread inside([&] {
        sync::LockContext context = ranks.context(3);
        context.inside_lock_all = true;
        EXPECT_EQ(sync::lock_wait(context, 0, LockKind::Shared), LockResult::Granted);
        EXPECT_EQ(order.fetch_add(1), 0);
        sync::unlock_shared(context, 0);
    });
    ranks.await_first(0, 3);
    sync::unlock_exclusive(first, 0);
    writer.join();
    inside.join();
    EXPECT_EQ(cell.word.load(), 0u);
}

TEST(NodeLock, UncontendedWordIsTakenAndFreedWithoutTheQueue) {
    Ranks ranks(2);
    sync::LockContext one = ranks.context(1);
    shm::LockCell& cell = ranks.lock_cell(0);
    EXPECT_TRUE(sync::try_lock_exclusive(cell, 1));
    EXPECT_EQ(cell.word.load(), sync::kExclusive | 2);
    EXPECT_FALSE(sync::try_lock_exclusive(cell, 0));
    EXPECT_FALSE(sync::try_lock_shared(cell));
    sync::unlock_exclusive(one, 0);
    EXPECT_TRUE(sync::try_lock_shared(cell));
    EXPECT_TRUE(sync::try_lock_shared(cell));
    EXPECT_EQ(cell.word.load(), 2u);
    EXPECT_FALSE(sync::try_lock_exclusive(cell, 1));
    sync::unlock_shared(one, 0);
    sync::unlock_shared(one, 0);
    EXPECT_EQ(cell.word.load(), 0u);
}

// Also a process that has just had the lock waits behind all others.
TEST(NodeLock, ServesWaitersInTheirOrder) {
    const Deadline deadline(60);
    Ranks ranks(8);
    sync::LockContext holder = ranks.context(0);
    take(holder, 3, LockKind::Exclusive);
    std::uint32_t last = 0;
    std::vector<std::thread> waiters;
    for (std::uint32_t rank = 1; rank < 8; ++rank) {
        waiters.emplace_back([&, rank] {
            sync::LockContext context = ranks.context(rank);
            take(context, 3, LockKind::Exclusive);
            EXPECT_EQ(std::exchange(last, rank), rank - 1);
            sync::unlock_exclusive(context, 3);
        });
        ranks.await_queued(3, rank);
    }
    sync::unlock_exclusive(holder, 3);
    take(holder, 3, LockKind::Exclusive);
    EXPECT_EQ(last, 7u);
    sync::unlock_exclusive(holder, 3);
    for (std::thread& waiter : waiters)
        waiter.join();
}

// The readers at the head of the queue get in together, and the writer behind them only after the last of them.
TEST(NodeLock, HandsOverToABatchOfReaders) {
    const Deadline deadline(60);
    Ranks ranks(7);
    sync::LockContext holder = ranks.context(0);
    take(holder, 0, LockKind::Exclusive);
    std::atomic<int> inside{0};
    std::atomic<int> left{0};
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 1; rank <= 5; ++rank) {
        threads.emplace_back([&, rank] {
            sync::LockContext context = ranks.context(rank);
            EXPECT_EQ(sync::lock_wait(context, 0, LockKind::Shared), LockResult::Granted);
            inside.fetch_add(1);
            while (inside.load() < 5)
                std::this_thread::yield();
            left.fetch_add(1);
            sync::unlock_shared(context, 0);
        });
        ranks.await_queued(0, rank);
    }
    threads.emplace_back([&] {
        sync::LockContext context = ranks.context(6);
        EXPECT_EQ(sync::lock_wait(context, 0, LockKind::Exclusive), LockResult::Granted);
        EXPECT_EQ(left.load(), 5);
        sync::unlock_exclusive(context, 0);
    });
    ranks.await_queued(0, 6);
    // A newcomer does not overtake the queue, even where it could share.
    EXPECT_FALSE(sync::try_lock_shared(ranks.lock_cell(0)));
    sync::unlock_exclusive(holder, 0);
    threads.clear();
    EXPECT_EQ(ranks.lock_cell(0).word.load(), 0u);
}

// No spinning and no time-out: one wake-up that is lost hangs here.
TEST(NodeLock, NoWakeUpIsLost) {
    const Deadline deadline(240);
    const Waiting waiting(0, 0, 0);
    const int rounds = times(25000, 3000);  // by each of 8 threads
    Ranks ranks(8);
    long counter = 0;
    ranks.run([&](RankCore& core) {
        sync::LockContext context = ranks.context(core.me);
        for (int i = 0; i < rounds; ++i) {
            take(context, 0, LockKind::Exclusive);
            ++counter;
            // The others queue meanwhile, so nearly every release is a hand-over.
            if (i % 4 == 0) std::this_thread::yield();
            sync::unlock_exclusive(context, 0);
        }
    });
    EXPECT_EQ(counter, 8L * rounds);
}

}  // namespace
}  // namespace osc::test
