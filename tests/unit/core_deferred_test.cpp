// Deferred synchronisation with ranks as threads, where ThreadSanitizer sees races: locks that are acquired with the
// queued operations, fences and posts that are awaited late, and the queue itself, used by several threads.
// Level: gate
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/epoch.h"
#include "core/targets.h"
#include "late_core.h"
#include "op/queue.h"

namespace osc::test {
namespace {

using sync::LockKind;

/// Runs f(core) in a thread per rank.
template <class F>
void run(Ranks& ranks, F&& f) {
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
        threads.emplace_back([&, rank] {
            LateCore core(ranks, rank);
            f(core);
        });
}

TEST(Deferred, ExclusiveLocksExclude) {
    constexpr std::uint32_t kTurns = times(2000, 300);
    Ranks ranks(4);
    run(ranks, [&](LateCore& core) {
        for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
            const std::uint32_t target = (core.me + turn) % 2;
            ASSERT_EQ(epoch::lock(core, target, LockKind::Exclusive, 0), Fault::None);
            core.increment(target);
            core.increment(target);
            if (turn % 3 == 0) {
                ASSERT_EQ(epoch::flush(core, target), Fault::None);
                core.increment(target);
            }
            ASSERT_EQ(epoch::unlock(core, target), Fault::None);
            EXPECT_FALSE(core.deferred.has(target));
        }
    });
    const std::uint64_t flushed = (kTurns + 2) / 3;
    EXPECT_EQ(ranks.memory(0)[0] + ranks.memory(1)[0], 4 * (2 * kTurns + flushed));
}

// All ranks acquire their locks in ascending order, so none may wait for ever, although rank 2 acquires its own lock at
// once.
TEST(Deferred, LocksAreTakenInTheProgramsOrder) {
    constexpr std::uint32_t kTurns = 300;
    Ranks ranks(3);
    run(ranks, [&](LateCore& core) {
        for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
            for (const std::uint32_t target : {1u, 2u}) {
                ASSERT_EQ(epoch::lock(core, target, LockKind::Exclusive, 0), Fault::None);
                if (core.me != 2) {
                    core.increment(target);
                    ASSERT_EQ(epoch::flush(core, target), Fault::None);
                }
            }
            if (core.me == 2) {
                core.increment(1);
                ASSERT_EQ(epoch::flush(core, 1), Fault::None);
                core.increment(2);
            }
            for (const std::uint32_t target : {1u, 2u})
                ASSERT_EQ(epoch::unlock(core, target), Fault::None);
        }
    });
    EXPECT_EQ(ranks.memory(1)[0], 3 * kTurns);
    EXPECT_EQ(ranks.memory(2)[0], 3 * kTurns);
}

TEST(Deferred, ALockWithNothingUnderItIsNotTaken) {
    Ranks ranks(2);
    LateCore first(ranks, 0);
    LateCore second(ranks, 1);
    ASSERT_EQ(epoch::lock(first, 1, LockKind::Exclusive, 0), Fault::None);
    EXPECT_EQ(ranks.lock_cell(1).word.load(), 0u);
    // The lock of a process's own memory is held at once, because the program may store there.
    std::thread([&] {
        ASSERT_EQ(epoch::lock(second, 1, LockKind::Exclusive, 0), Fault::None);
        EXPECT_NE(ranks.lock_cell(1).word.load(), 0u);
    }).join();
    EXPECT_EQ(epoch::unlock(first, 1), Fault::None);
    EXPECT_EQ(epoch::unlock(second, 1), Fault::None);
    EXPECT_EQ(ranks.lock_cell(1).word.load(), 0u);
    EXPECT_EQ(epoch::unlock(first, 1), Fault::Sync);
}

// In each epoch one rank, another one each time, increments all words; its neighbours come ever earlier and later.
TEST(Deferred, FencesSeparateEpochs) {
    constexpr std::uint32_t kEpochs = times(1000, 200);
    Ranks ranks(4);
    run(ranks, [&](LateCore& core) {
        for (std::uint32_t turn = 0; turn < kEpochs; ++turn) {
            const unsigned opening = turn % 2 == 0 ? epoch::kNoPrecede : 0u;
            const unsigned closing = turn % 2 == 1 ? 0u : epoch::kNoSucceed;
            ASSERT_EQ(epoch::fence(core, opening), Fault::None);
            if (core.me == turn % core.size)
                for (std::uint32_t target = 0; target < core.size; ++target)
                    core.increment(target);
            ASSERT_EQ(epoch::fence(core, closing), Fault::None);
            ASSERT_EQ(ranks.memory(core.me)[0], turn + 1);
        }
        ASSERT_EQ(epoch::fence(core, epoch::kNoSucceed), Fault::None);
    });
}

// An operation for which the queue has no room awaits the target's fence.
TEST(Deferred, AFullQueueAwaitsTheTargetsFence) {
    Ranks ranks(2);
    std::atomic<bool> made{false};
    run(ranks, [&](LateCore& core) {
        if (core.me == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            made.store(true);
        }
        ASSERT_EQ(epoch::fence(core, epoch::kNoPrecede), Fault::None);
        if (core.me == 0) {
            core.increment(1);
            ASSERT_EQ(strategy::perform_queued(core, 1), Fault::None);
            EXPECT_TRUE(made.load());
        }
        ASSERT_EQ(epoch::fence(core, epoch::kNoSucceed), Fault::None);
    });
    EXPECT_EQ(ranks.memory(1)[0], 1u);
}

TEST(Deferred, CompleteAwaitsThePost) {
    constexpr std::uint32_t kTurns = times(1000, 200);
    Ranks ranks(3);
    run(ranks, [&](LateCore& core) {
        const std::uint32_t right = (core.me + 1) % core.size;
        const std::uint32_t left = (core.me + core.size - 1) % core.size;
        for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
            ASSERT_EQ(epoch::start(core, {&right, 1}, 0), Fault::None);
            core.increment(right);
            ASSERT_EQ(ranks.memory(core.me)[0], turn - 1);  // no origin may write before the post
            ASSERT_EQ(epoch::post(core, {&left, 1}, 0), Fault::None);
            ASSERT_EQ(epoch::complete(core), Fault::None);
            ASSERT_EQ(epoch::wait(core), Fault::None);
            ASSERT_EQ(ranks.memory(core.me)[0], turn);
        }
    });
}

TEST(Queue, DiscardedOperationsAreNotPerformed) {
    op::Queue queue;
    queue.add(3, {});
    queue.add(4, {});
    queue.discard(3);
    EXPECT_FALSE(queue.has(3));
    EXPECT_EQ(queue.targets(), std::vector<std::uint32_t>{4});
    int done = 0;
    for (const std::uint32_t target : {3u, 4u})
        queue.empty(target, [&](const op::Deferral&) { ++done; });
    EXPECT_EQ(done, 1);
}

// Of several threads that add and empty, none overtakes its own.
TEST(Queue, ThreadsKeepTheirOrder) {
    constexpr int kThreads = 4;
    constexpr std::int64_t kEach = 3000;
    op::Queue queue;
    std::vector<std::int64_t> last(kThreads, -1);
    const auto empty = [&] {
        queue.empty(7, [&](const op::Deferral& operation) {
            const std::int64_t thread = operation.call.disp / kEach;
            const std::int64_t number = operation.call.disp % kEach;
            EXPECT_EQ(last[static_cast<std::size_t>(thread)], number - 1);
            last[static_cast<std::size_t>(thread)] = number;
        });
    };
    std::vector<std::jthread> threads;
    for (std::int64_t thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
            for (std::int64_t i = 0; i < kEach; ++i) {
                op::Deferral operation;
                operation.call.disp = thread * kEach + i;
                if (queue.add(7, std::move(operation)) > 50 || i % 97 == 0) empty();
            }
        });
    threads.clear();
    EXPECT_FALSE(queue.has(6));
    empty();
    EXPECT_FALSE(queue.has(7));
    EXPECT_TRUE(queue.targets().empty());
    EXPECT_EQ(last, std::vector<std::int64_t>(kThreads, kEach - 1));
}

}  // namespace
}  // namespace osc::test
