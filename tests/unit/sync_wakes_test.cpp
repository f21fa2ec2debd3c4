// Every change for which a process of the node may sleep rings its bell. A sleep is short, so a ring that is missing
// costs the waiter milliseconds and fails no other test.
#include <memory>

#include "sync/notify.h"
#include "sync/pscw.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

using sync::LockKind;

/// A thread that sleeps on the bell, as a notifier sees it.
class Sleeper {
  public:
    explicit Sleeper(shm::Doorbell& bell) : bell_(bell), before_(bell.word.load()) { bell_.sleepers.fetch_add(1); }
    ~Sleeper() { bell_.sleepers.fetch_sub(1); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Whether the bell has rung since the last call.
    bool woken() {
        const std::uint32_t before = before_;
        before_ = bell_.word.load();
        return before_ != before;
    }

  private:
    shm::Doorbell& bell_;
    std::uint32_t before_;
};

TEST(Wakes, ABarrierThatEnds) {
    shm::Barrier barrier;
    Sleeper sleeper(barrier.bell);
    EXPECT_TRUE(barrier.arrive_and_wait(1, kNoneDead));
    EXPECT_TRUE(sleeper.woken());
    barrier.give_up();
    EXPECT_TRUE(sleeper.woken());
}

TEST(Wakes, APostAndAComplete) {
    Ranks ranks(2);
    Sleeper origin(ranks.controls().block(0).pscw_bell);
    EXPECT_TRUE(sync::send_post(ranks.controls(), 1, 0));
    EXPECT_TRUE(origin.woken());
    Sleeper target(ranks.controls().block(1).pscw_bell);
    sync::send_complete(ranks.controls(), 1);
    EXPECT_TRUE(target.woken());
}

TEST(Wakes, AFence) {
    Ranks ranks(2);
    RankCore& core = ranks.core(1);
    core.epoch.needs_target_fence = true;
    Sleeper origin(core.mine().pscw_bell);
    core.announce_fence(1, false);
    EXPECT_TRUE(origin.woken());
}

TEST(Wakes, ANotification) {
    struct Room {
        alignas(sync::NotifyBoard) std::byte bytes[sizeof(sync::NotifyBoard) + sizeof(std::uint64_t)];
    };
    const auto room = std::make_unique<Room>();
    auto& board = *new (room->bytes) sync::NotifyBoard(1, false);
    Sleeper owner(board.bell);
    board.add(0);
    EXPECT_TRUE(owner.woken());
}

// Two threads of a process use one target of its start. One of them awaits the post for both, and the other one sleeps
// until that is over.
TEST(Wakes, TheEndOfAnotherThreadsWaitForAPost) {
    const Deadline deadline(60);
    const Waiting waiting(0, 0, 10);
    Ranks ranks(3);
    RankCore& core = ranks.core(0);
    core.threaded = true;
    const std::uint32_t targets[] = {1, 2};
    ASSERT_EQ(epoch::start(core, targets, 0), Fault::None);
    sync::send_post(ranks.controls(), 1, 0);
    Sleeper other(core.mine().pscw_bell);
    EXPECT_EQ(epoch::open_target(core, core.target(1)), Fault::None);
    EXPECT_TRUE(other.woken());
    ranks.lives().kill(2);
    EXPECT_EQ(epoch::open_target(core, core.target(2)), Fault::Dead);
    EXPECT_TRUE(other.woken());
}

// The waiters stand in the queue as remote processes do, whose requests the agent of the lock's process makes.
sync::LockContext asked(Ranks& ranks, std::uint32_t rank, bool inside_lock_all, LockKind kind) {
    sync::LockContext context = ranks.context(rank);
    context.runner = 0;
    context.inside_lock_all = inside_lock_all;
    EXPECT_EQ(sync::lock_ask(context, 0, kind), sync::LockReply::Queued);
    return context;
}

class LockWakes : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(sync::try_lock_exclusive(ranks_.lock_cell(0), 0)); }
    Ranks ranks_{3};
    shm::WaitCell* cells_ = ranks_.controls().block(0).proxies;
    sync::LockContext holder_ = ranks_.context(0);
};

TEST_F(LockWakes, AReleaseWakesEveryReaderThatItLetsIn) {
    asked(ranks_, 1, false, LockKind::Shared);
    asked(ranks_, 2, true, LockKind::Shared);
    Sleeper first(cells_[0].bell);
    Sleeper second(cells_[1].bell);
    sync::unlock_exclusive(holder_, 0);
    EXPECT_EQ(ranks_.lock_cell(0).word.load(), 2u);
    EXPECT_TRUE(first.woken());
    EXPECT_TRUE(second.woken());
}

TEST_F(LockWakes, AReleaseWakesTheWriterThatItLetsIn) {
    asked(ranks_, 1, false, LockKind::Exclusive);
    Sleeper writer(cells_[0].bell);
    sync::unlock_exclusive(holder_, 0);
    EXPECT_EQ(ranks_.lock_cell(0).word.load(), sync::exclusive_word(1));
    EXPECT_TRUE(writer.woken());
}

TEST_F(LockWakes, ABrokenLockWakesEveryWaiter) {
    asked(ranks_, 1, false, LockKind::Shared);
    Sleeper waiter(cells_[0].bell);
    sync::break_lock_of(holder_, 0, 0);
    EXPECT_TRUE(waiter.woken());
}

}  // namespace
}  // namespace osc::test
