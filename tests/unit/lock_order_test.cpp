// The order of deferred locks, with ranks as threads: a process acquires its locks in the order of its calls, over all
// windows and threads, and at MPI_THREAD_MULTIPLE a thread that waits for a lock blocks itself only.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "core/epoch.h"
#include "late_core.h"
#include "spanning_core.h"

namespace osc::test {
namespace {

using sync::LockKind;

Fault exclusive(Core& core, std::uint32_t target) {
    return epoch::lock(core, target, LockKind::Exclusive, 0);
}

void in_thread(const std::function<void()>& call) {
    std::thread(call).join();
}

// A thread may be listed for a moment after its join.
void await_end_of_threads() {
    struct stat tasks {};
    for (int i = 0; i < times(10000, 100) && ::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// All ranks lock target 0 of one window, then target 1 of the other one, so no rank may wait for ever.
TEST(LockOrder, HoldsOverTwoWindows) {
    const Deadline deadline(60);
    constexpr std::uint32_t kTurns = 300;
    Ranks first(2);
    Ranks second(2);
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < 2; ++rank)
        threads.emplace_back([&, rank] {
            LateCore one(first, rank);
            LateCore two(second, rank);
            two.lock_order = one.lock_order;
            for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
                ASSERT_EQ(exclusive(one, 0), Fault::None);
                ASSERT_EQ(exclusive(two, 1), Fault::None);
                one.increment(0);
                two.increment(1);
                ASSERT_EQ(epoch::flush(two, 1), Fault::None);
                ASSERT_EQ(epoch::flush(one, 0), Fault::None);
                ASSERT_EQ(epoch::unlock(two, 1), Fault::None);
                ASSERT_EQ(epoch::unlock(one, 0), Fault::None);
            }
        });
    threads.clear();
    EXPECT_EQ(first.memory(0)[0], 2 * kTurns);
    EXPECT_EQ(second.memory(1)[0], 2 * kTurns);
}

TEST(LockOrder, ALockOnAnotherNodeIsAwaitedBeforeTheNextOne) {
    Ranks ranks(3);
    SpanningCore core(ranks, 0);
    ASSERT_TRUE(core.strategies.lock->may_defer(core));
    ASSERT_EQ(exclusive(core, 2), Fault::None);
    EXPECT_EQ(core.awaited, 0);
    // The fast path of a process with such windows leaves the next lock to the slow path.
    EXPECT_FALSE((epoch::try_lock<true, true>(core, 1)));
    ASSERT_EQ(exclusive(core, 1), Fault::None);
    EXPECT_EQ(core.awaited, 1);
    ASSERT_EQ(exclusive(core, 0), Fault::None);  // this rank holds lock 2 by now
    EXPECT_EQ(core.awaited, 1);
    for (const std::uint32_t target : {0u, 1u, 2u})
        ASSERT_EQ(epoch::unlock(core, target), Fault::None);
    // Nothing is left to wait for.
    ASSERT_EQ(exclusive(core, 2), Fault::None);
    ASSERT_EQ(epoch::unlock(core, 2), Fault::None);
    core.target(1);
    EXPECT_TRUE((epoch::try_lock<true, true>(core, 1)));
    ASSERT_EQ(epoch::unlock(core, 1), Fault::None);
    EXPECT_EQ(core.awaited, 1);
}

TEST(LockOrder, ALockAllFollowsADeferredLock) {
    Ranks ranks(3);
    SpanningCore one(ranks, 0);
    Ranks others(2);
    others.core(0).lock_order = one.lock_order;
    ASSERT_EQ(exclusive(one, 2), Fault::None);
    ASSERT_EQ(epoch::lock_all(others.core(0), 0), Fault::None);
    EXPECT_EQ(one.awaited, 1);
    ASSERT_EQ(epoch::unlock_all(others.core(0)), Fault::None);
    ASSERT_EQ(epoch::unlock(one, 2), Fault::None);
}

TEST(LockOrder, ALockWithoutCheckWaitsForNothing) {
    Ranks ranks(3);
    SpanningCore core(ranks, 0);
    ASSERT_EQ(exclusive(core, 2), Fault::None);
    ASSERT_EQ(epoch::lock(core, 1, LockKind::Exclusive, epoch::kNoCheck), Fault::None);
    EXPECT_EQ(core.awaited, 0);
    ASSERT_EQ(exclusive(core, 0), Fault::None);
    EXPECT_EQ(core.awaited, 1);
    for (const std::uint32_t target : {0u, 1u, 2u})
        ASSERT_EQ(epoch::unlock(core, target), Fault::None);
}

// Below MPI_THREAD_MULTIPLE the program orders the calls of its threads.
TEST(LockOrder, HoldsOverThreadsThatEnd) {
    Ranks ranks(3);
    SpanningCore core(ranks, 0);
    in_thread([&] { ASSERT_EQ(exclusive(core, 2), Fault::None); });
    EXPECT_EQ(core.awaited, 0);
    in_thread([&] { ASSERT_EQ(exclusive(core, 1), Fault::None); });
    EXPECT_EQ(core.awaited, 1);
    in_thread([&] {
        for (const std::uint32_t target : {1u, 2u})
            ASSERT_EQ(epoch::unlock(core, target), Fault::None);
    });
}

TEST(LockOrder, HoldsOverThreadsThatLive) {
    Ranks ranks(3);
    Ranks others(2);
    SpanningCore one(ranks, 0);
    others.core(0).lock_order = one.lock_order;
    std::binary_semaphore first(0), second(0);
    std::jthread locking([&] {
        ASSERT_EQ(exclusive(one, 2), Fault::None);
        first.release();
        second.acquire();
        ASSERT_EQ(epoch::unlock(one, 2), Fault::None);
    });
    first.acquire();
    EXPECT_EQ(one.awaited, 0);
    ASSERT_EQ(epoch::lock_all(others.core(0), 0), Fault::None);
    EXPECT_EQ(one.awaited, 1);
    ASSERT_EQ(epoch::unlock_all(others.core(0)), Fault::None);
    second.release();
}

// On this node the deferred lock is a queued one, which the next lock acquires.
TEST(LockOrder, HoldsOverThreadsOnOneNode) {
    Ranks ranks(3);
    LateCore core(ranks, 0);
    in_thread([&] { ASSERT_EQ(exclusive(core, 1), Fault::None); });
    EXPECT_EQ(core.target(1).held_lock, HeldLock::ExclusiveDeferred);
    in_thread([&] { ASSERT_EQ(exclusive(core, 2), Fault::None); });
    EXPECT_EQ(core.target(1).held_lock, HeldLock::Exclusive);
    for (const std::uint32_t target : {1u, 2u})
        ASSERT_EQ(epoch::unlock(core, target), Fault::None);
}

// A thread that the program makes later may be ordered behind the lock in any way.
TEST(LockOrder, AThreadMadeLaterFollowsADeferredLock) {
    if (kSanitized) GTEST_SKIP() << "the sanitizer has a thread";
    Ranks ranks(3);
    SpanningCore core(ranks, 0);
    core.threaded = true;
    await_end_of_threads();
    ASSERT_EQ(exclusive(core, 2), Fault::None);
    EXPECT_EQ(core.awaited, 0);
    in_thread([&] { ASSERT_EQ(exclusive(core, 1), Fault::None); });
    EXPECT_EQ(core.awaited, 1);
    for (const std::uint32_t target : {1u, 2u})
        ASSERT_EQ(epoch::unlock(core, target), Fault::None);
}

// A process that has had another thread defers no lock any more.
TEST(LockOrder, BesideOtherThreadsNoLockIsDeferred) {
    Ranks ranks(3);
    SpanningCore core(ranks, 0);
    core.threaded = true;
    in_thread([&] { ASSERT_EQ(exclusive(core, 2), Fault::None); });
    EXPECT_EQ(core.awaited, 1);
    ASSERT_EQ(exclusive(core, 1), Fault::None);
    EXPECT_EQ(core.awaited, 1);
    for (const std::uint32_t target : {1u, 2u})
        ASSERT_EQ(epoch::unlock(core, target), Fault::None);
    await_end_of_threads();
    ASSERT_EQ(exclusive(core, 2), Fault::None);
    EXPECT_EQ(core.awaited, 2);
    ASSERT_EQ(epoch::unlock(core, 2), Fault::None);
}

// One thread waits for a lock that is granted only when another thread of the process has had a free one.
TEST(LockOrder, AWaitingThreadBlocksItselfOnly) {
    const Deadline deadline(60);
    Ranks ranks(3);
    SpanningCore core(ranks, 0);
    core.threaded = true;
    core.granted = false;
    std::thread waiting([&] { ASSERT_EQ(exclusive(core, 2), Fault::None); });
    while (core.awaited.load() == 0)
        std::this_thread::yield();
    ASSERT_EQ(exclusive(core, 0), Fault::None);
    ASSERT_EQ(epoch::unlock(core, 0), Fault::None);
    core.granted = true;
    waiting.join();
    EXPECT_EQ(core.awaited, 1);
    ASSERT_EQ(epoch::unlock(core, 2), Fault::None);
}

// The same on a node, where rank 1 has the lock.
TEST(LockOrder, AWaitingThreadOfANodeBlocksItselfOnly) {
    const Deadline deadline(60);
    Ranks ranks(3);
    LateCore core(ranks, 0);
    core.threaded = true;
    ASSERT_EQ(exclusive(ranks.core(1), 1), Fault::None);
    std::thread waiting([&] {
        ASSERT_EQ(exclusive(core, 1), Fault::None);
        core.increment(1);
        ASSERT_EQ(epoch::unlock(core, 1), Fault::None);
    });
    ranks.await_queued(1, 0);
    std::thread([&] {
        ASSERT_EQ(exclusive(core, 2), Fault::None);
        ASSERT_EQ(epoch::unlock(core, 2), Fault::None);
    }).join();
    ASSERT_EQ(epoch::unlock(ranks.core(1), 1), Fault::None);
    waiting.join();
    EXPECT_EQ(ranks.memory(1)[0], 1u);
}

// One thread acquires the deferred lock while another one ends its epoch and frees the window.
TEST(LockOrder, AnEpochMayEndWhileItsLockIsAcquired) {
    const Deadline deadline(120);
    for (int turn = 0; turn < times(2000, 200); ++turn) {
        Ranks ranks(3);
        Ranks others(1);
        auto window = std::make_unique<SpanningCore>(ranks, 0);
        window->threaded = true;
        strategy::LockOrder order;
        window->lock_order = others.core(0).lock_order = &order;
        await_end_of_threads();
        ASSERT_EQ(exclusive(*window, 2), Fault::None);
        std::jthread asking([&] {
            ASSERT_EQ(exclusive(others.core(0), 0), Fault::None);
            ASSERT_EQ(epoch::unlock(others.core(0), 0), Fault::None);
        });
        ASSERT_EQ(epoch::unlock(*window, 2), Fault::None);
        window.reset();
    }
}

}  // namespace
}  // namespace osc::test
