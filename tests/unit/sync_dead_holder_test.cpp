// Locks whose holder died: every waiter gets an error, and none waits for ever.
#include <signal.h>
#include <sys/wait.h>

#include <string>

#include "reach/reach.h"
#include "sync/lock.h"
#include "sync/stripe.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

using sync::LockKind;
using sync::LockResult;

struct DeadHolder : ::testing::Test {
    const Deadline deadline{60};
    const Waiting waiting{10, 1, 10};
};

TEST_F(DeadHolder, OfAnExclusiveLockIsReportedToAllWaiters) {
    Ranks ranks(4);
    ASSERT_TRUE(sync::try_lock_exclusive(ranks.lock_cell(1), 2));
    ranks.lives().kill(2);
    ranks.run([&](RankCore& core) {
        if (core.me == 2) return;
        sync::LockContext context = ranks.context(core.me);
        const LockKind kind = core.me == 0 ? LockKind::Exclusive : LockKind::Shared;
        EXPECT_EQ(sync::lock_wait(context, 1, kind), LockResult::HolderDied);
    });
    sync::LockContext late = ranks.context(0);
    EXPECT_EQ(sync::lock_wait(late, 1, LockKind::Shared), LockResult::HolderDied);
    EXPECT_EQ(late.dead_rank, 2u);
    EXPECT_FALSE(sync::try_lock_shared(ranks.lock_cell(1)));
    EXPECT_FALSE(sync::try_lock_exclusive(ranks.lock_cell(1), 0));
}

// The memory of a process that ends cannot be mapped while the system still says that it lives.
TEST(DeadTarget, IsReportedOnceTheSystemSaysSo) {
    struct Ending final : sync::Liveness {
        explicit Ending(int looks) : left(looks) {}
        bool alive(std::uint32_t) override { return left-- > 0; }
        int dead_in_collective() override { return -1; }
        int left;
    };
    Ending ends(3);
    EXPECT_EQ(reach::not_mapped(ends, 1, Fault::NoMem), Fault::Dead);
    Ending lives(1000);
    EXPECT_EQ(reach::not_mapped(lives, 1, Fault::NoMem), Fault::NoMem);
}

TEST_F(DeadHolder, IsReportedToAWaiterOutsideTheQueue) {
    Ranks ranks(3);
    ASSERT_TRUE(sync::try_lock_exclusive(ranks.lock_cell(1), 2));
    ranks.lives().kill(2);
    sync::LockContext context = ranks.context(0);
    context.may_queue = false;
    EXPECT_EQ(sync::lock_wait(context, 1, LockKind::Exclusive), LockResult::HolderDied);
    EXPECT_EQ(context.dead_rank, 2u);
}

// The process that finds the death refuses all waiters, also those that could not find it, and removes all cells from
// the queue: no later waiter may be appended to a cell that waits in another queue by then.
TEST_F(DeadHolder, IsReportedToAllByTheFirstProcessThatFindsIt) {
    struct Blind final : sync::Liveness {
        bool alive(std::uint32_t) override { return true; }
        int dead_in_collective() override { return -1; }
    };
    Ranks ranks(5);
    ASSERT_TRUE(sync::try_lock_exclusive(ranks.lock_cell(1), 2));
    std::vector<std::thread> waiters;
    for (const std::uint32_t rank : {0u, 3u})
        waiters.emplace_back([&ranks, rank] {
            Blind blind;
            sync::LockContext context{ranks.controls(), rank, ranks.size(), blind};
            EXPECT_EQ(sync::lock_wait(context, 1, LockKind::Exclusive), LockResult::HolderDied);
            EXPECT_EQ(context.dead_rank, 2u);
        });
    while (ranks.controls().block(0).wait.target.load() == 0 || ranks.controls().block(3).wait.target.load() == 0)
        std::this_thread::yield();
    ranks.lives().kill(2);
    sync::LockContext seeing = ranks.context(4);
    EXPECT_EQ(sync::lock_wait(seeing, 1, LockKind::Shared), LockResult::HolderDied);
    EXPECT_EQ(ranks.lock_cell(1).head, 0u);
    EXPECT_EQ(ranks.lock_cell(1).tail, 0u);
    for (std::thread& waiter : waiters)
        waiter.join();
}

TEST_F(DeadHolder, OfTheQueuesGuardBreaksTheLock) {
    Ranks ranks(3);
    sync::LockContext holder = ranks.context(0);
    ASSERT_TRUE(sync::try_lock_exclusive(ranks.lock_cell(1), 0));
    ranks.lock_cell(1).guard.store(3);
    ranks.lives().kill(2);
    sync::LockContext waiter = ranks.context(1);
    EXPECT_EQ(sync::lock_wait(waiter, 1, LockKind::Exclusive), LockResult::HolderDied);
    sync::unlock_exclusive(holder, 1);
    EXPECT_NE(ranks.lock_cell(1).word.load() & sync::kBroken, 0u);
    EXPECT_EQ(sync::lock_wait(holder, 1, LockKind::Exclusive), LockResult::HolderDied);
}

// It had taken the waiter out of the queue, and died before it answered: no hand-over and no break finds that waiter.
TEST_F(DeadHolder, InTheMiddleOfAHandOverLosesNoWaiter) {
    Ranks ranks(4);
    ASSERT_TRUE(sync::try_lock_exclusive(ranks.lock_cell(1), 2));
    std::vector<std::thread> waiters;
    for (const std::uint32_t rank : {0u, 3u}) {
        waiters.emplace_back([&ranks, rank] {
            sync::LockContext context = ranks.context(rank);
            EXPECT_EQ(sync::lock_wait(context, 1, LockKind::Exclusive), LockResult::HolderDied);
            EXPECT_EQ(context.dead_rank, 2u);
        });
        ranks.await_queued(1, rank);
    }
    shm::LockCell& cell = ranks.lock_cell(1);
    std::uint32_t free = 0;
    while (!cell.guard.compare_exchange_weak(free, 3))
        free = 0;
    cell.head = ranks.controls().block(0).wait.next;
    cell.word.store(sync::exclusive_word(0) | sync::kQueued);
    ranks.controls().block(0).wait.target.store(0);
    ranks.lives().kill(2);
    for (std::thread& waiter : waiters)
        waiter.join();
}

TEST_F(DeadHolder, OfASharedLockIsReported) {
    Ranks ranks(3);
    ASSERT_EQ(epoch::lock(ranks.core(2), 1, LockKind::Shared, 0), Fault::None);
    ranks.lives().kill(2);
    EXPECT_EQ(epoch::lock(ranks.core(0), 1, LockKind::Exclusive, 0), Fault::Dead);
    EXPECT_NE(std::string(base::fault_text()).find("rank 2"), std::string::npos) << base::fault_text();
}

// The lock's holder is on another node and lives, but the target, which would execute its release, is dead.
TEST_F(DeadHolder, OfTheTargetThatActsForAnotherNodeIsReported) {
    Ranks ranks(3);
    const shm::LocalRanks places{{0, 1, 2}};
    shm::ControlTable controls = ranks.controls();
    controls.local_ranks = &places;
    ASSERT_TRUE(sync::try_lock_shared(ranks.lock_cell(1)));  // counted in the word, but noted by no local process
    ranks.lives().kill(1);
    sync::LockContext context{controls, 0, 3, ranks.lives()};
    EXPECT_EQ(sync::lock_wait(context, 1, LockKind::Exclusive), LockResult::HolderDied);
    EXPECT_EQ(context.dead_rank, 1u);
}

// A process was killed in the queue and granted the lock afterwards: no process releases it.
TEST_F(DeadHolder, ThatDiedInTheQueueIsReported) {
    for (const LockKind kind : {LockKind::Shared, LockKind::Exclusive}) {
        Ranks ranks(4);
        ASSERT_EQ(epoch::lock(ranks.core(0), 1, LockKind::Exclusive, 0), Fault::None);
        const pid_t dying = ::fork();
        if (dying == 0) {
            epoch::lock(ranks.core(2), 1, kind, 0);
            ::_exit(1);
        }
        ranks.await_queued(1, 2);
        ::kill(dying, SIGKILL);
        ::waitpid(dying, nullptr, 0);
        ranks.lives().kill(2);
        std::jthread behind([&] { EXPECT_EQ(epoch::lock(ranks.core(3), 1, LockKind::Exclusive, 0), Fault::Dead); });
        ranks.await_queued(1, 3);
        ASSERT_EQ(epoch::unlock(ranks.core(0), 1), Fault::None);
    }
}

// The death of a process with several shared locks breaks these and no others.
TEST_F(DeadHolder, OfSeveralLocksBreaksNoOther) {
    Ranks ranks(70);
    for (const std::uint32_t target : {3u, 4u, 67u})
        ASSERT_EQ(epoch::lock(ranks.core(2), target, LockKind::Shared, 0), Fault::None);
    ASSERT_EQ(epoch::unlock(ranks.core(2), 4), Fault::None);
    for (const std::uint32_t target : {1u, 4u, 66u})
        ASSERT_EQ(epoch::lock(ranks.core(1), target, LockKind::Shared, 0), Fault::None);
    ranks.lives().kill(2);
    for (const std::uint32_t target : {1u, 4u, 66u}) {
        std::jthread waiter([&] {
            EXPECT_EQ(epoch::lock(ranks.core(target + 2), target, LockKind::Exclusive, 0), Fault::None) << target;
        });
        ranks.lives().await_checks(1);
        EXPECT_EQ(epoch::unlock(ranks.core(1), target), Fault::None);
    }
    EXPECT_EQ(epoch::lock(ranks.core(0), 3, LockKind::Exclusive, 0), Fault::Dead);
    EXPECT_EQ(epoch::lock(ranks.core(0), 67, LockKind::Exclusive, 0), Fault::Dead);
}

TEST_F(DeadHolder, OfAStripeIsReported) {
    Ranks ranks(3);
    std::atomic<std::uint32_t>& stripe = ranks.controls().block(1).stripe_of(0);
    std::uint32_t dead = 99;
    ASSERT_TRUE(sync::stripe_lock(stripe, 2, ranks.lives(), dead));
    ranks.lives().kill(2);
    EXPECT_FALSE(sync::stripe_lock(stripe, 0, ranks.lives(), dead));
    EXPECT_EQ(dead, 2u);
    // Later callers neither wait nor ask.
    struct Unasked final : sync::Liveness {
        bool alive(std::uint32_t) override {
            ADD_FAILURE();
            return true;
        }
        int dead_in_collective() override { return -1; }
    } unasked;
    for (int i = 0; i < times(10000, 1000); ++i) {
        dead = 99;
        ASSERT_FALSE(sync::stripe_lock(stripe, 1, unasked, dead));
        ASSERT_EQ(dead, 2u);
    }
}

}  // namespace
}  // namespace osc::test
