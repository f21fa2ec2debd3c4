// Locks that processes of other nodes take by request: how requests wait behind them, in which order they go on, and
// how they share the queue with the processes of the node.
#include <thread>

#include "net_target.h"

namespace osc::test {
namespace {

using sync::LockKind;
using sync::LockResult;
using Numbers = std::vector<std::pair<std::uint32_t, Status>>;

class NetLocks : public ::testing::Test {
  protected:
    static constexpr std::uint32_t kLocal = 1;  // a process of the target's node; 3 and higher are elsewhere

    std::uint64_t word() { return target_.ranks.lock_cell(0).word.load(); }
    void lock_locally() { ASSERT_TRUE(sync::try_lock_exclusive(target_.ranks.lock_cell(0), kLocal)); }
    void unlock_locally() {
        sync::LockContext context = target_.ranks.context(kLocal);
        sync::unlock_exclusive(context, 0);
    }
    void request(std::uint32_t origin, std::uint32_t number, const Body& body) { target_.send(origin, number, body); }
    void expect_answers(const Numbers& expected) { EXPECT_EQ(target_.take_answers(), expected); }
    static Numbers done(std::initializer_list<std::uint32_t> numbers) {
        Numbers all;
        for (const std::uint32_t number : numbers)
            all.emplace_back(number, Status::Done);
        return all;
    }
    /// A local process that waits for the lock in a thread of its own, standing in the queue already.
    std::thread local_waiter(std::uint32_t rank, LockResult& result) {
        std::thread thread([this, rank, &result] {
            sync::LockContext context = target_.ranks.context(rank);
            result = sync::lock_wait(context, 0, LockKind::Exclusive);
        });
        target_.ranks.await_queued(0, rank);
        return thread;
    }
    void TearDown() override { EXPECT_TRUE(target_.guards_untouched()); }

    Deadline deadline_{60};
    Target target_;
};

TEST_F(NetLocks, AFreeLockIsGrantedAtOnce) {
    request(3, 1, Body().lock(LockAsk::Exclusive).put(0, 5));
    expect_answers(done({1}));
    EXPECT_EQ(word(), sync::exclusive_word(3));
    EXPECT_FALSE(sync::try_lock_exclusive(target_.ranks.lock_cell(0), kLocal));
    EXPECT_FALSE(target_.service.resume());
    request(3, 2, Body().unlock(LockAsk::Exclusive));
    expect_answers(done({2}));
    EXPECT_EQ(word(), 0u);
}

TEST_F(NetLocks, ARequestWaitsAndThoseBehindItStayInOrder) {
    lock_locally();
    request(3, 1, Body().put(0, 1).lock(LockAsk::Exclusive).put(8, 1).get(0));
    request(3, 2, Body().sum(Opcode::Update, 8, 10));
    request(3, 3, Body().add({Opcode::Put, Basic::None, Op::None, 0, 8, -8}, "12345678").sum(Opcode::Update, 8, 100));
    request(3, 4, Body().get(8));
    expect_answers({});
    EXPECT_EQ(target_.words()[0], 1u);  // before the lock
    EXPECT_EQ(target_.words()[1], 0u);
    for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(target_.service.resume());
    expect_answers({});
    // Others do not wait, nor does what the same origin sends as a query or notice.
    request(4, 5, Body().put(16, 4));
    expect_answers(done({5}));
    target_.send(3, 6, Body().step(Opcode::Describe), kWindow, FrameKind::Query);
    expect_answers(done({6}));
    target_.send(3, 7, Body().step(Opcode::Post), kWindow, FrameKind::Notice);
    EXPECT_NE(target_.ranks.controls().block(0).posts(3).load() & shm::ControlBlock::bit(3), 0u);
    expect_answers({});

    unlock_locally();
    EXPECT_FALSE(target_.service.resume());
    ASSERT_EQ(target_.answers.all.size(), 4u);
    EXPECT_EQ(target_.answers.all[0].at<std::uint64_t>(0), 1u);
    EXPECT_EQ(target_.answers.all[3].at<std::uint64_t>(0), 111u);
    expect_answers({{1, Status::Done}, {2, Status::Done}, {3, Status::OutOfRange}, {4, Status::Done}});
    EXPECT_EQ(word(), sync::exclusive_word(3));
}

// One window's lock does not hold up the same origin's requests to another.
TEST_F(NetLocks, OtherWindowsDoNotWait) {
    Ranks others(Target::kRanks, 1);
    net::ExposedWindow other = target_.exposed;
    other.id = 5;
    other.controls = &others.controls();
    target_.service.add(other);
    lock_locally();
    request(3, 1, Body().lock(LockAsk::Exclusive));
    target_.send(3, 2, Body().lock(LockAsk::Exclusive).put(0, 1), 5);
    expect_answers(done({2}));
    target_.service.remove(5);
}

TEST_F(NetLocks, SharedTogetherExclusiveAloneFirstComeFirstServed) {
    request(3, 1, Body().lock(LockAsk::Shared));
    request(4, 2, Body().lock(LockAsk::Shared));
    expect_answers(done({1, 2}));
    EXPECT_EQ(word(), 2u);
    request(5, 3, Body().lock(LockAsk::Exclusive));
    request(2, 4, Body().lock(LockAsk::Shared));  // behind the exclusive one
    expect_answers({});
    request(3, 5, Body().unlock(LockAsk::Shared));
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({5}));
    request(4, 6, Body().unlock(LockAsk::Shared));
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({6, 3}));
    EXPECT_EQ(word() & ~sync::kQueued, sync::exclusive_word(5));
    request(5, 7, Body().unlock(LockAsk::Exclusive));
    EXPECT_FALSE(target_.service.resume());
    expect_answers(done({7, 4}));
    EXPECT_EQ(word() & sync::kCountMask, 1u);
    request(2, 8, Body().unlock(LockAsk::Shared));
    EXPECT_EQ(word(), 0u);
}

// One that is inside a lock_all must not wait behind an exclusive request, which may wait for what it holds elsewhere.
TEST_F(NetLocks, PassingJoinsSharedHoldersPastTheQueue) {
    request(3, 1, Body().lock(LockAsk::Shared));
    request(5, 2, Body().lock(LockAsk::Exclusive));
    request(4, 3, Body().lock(LockAsk::Barging));
    expect_answers(done({1, 3}));
    EXPECT_EQ(word() & sync::kCountMask, 2u);
    request(3, 4, Body().unlock(LockAsk::Shared));
    EXPECT_TRUE(target_.service.resume());
    request(4, 5, Body().unlock(LockAsk::Barging));
    EXPECT_FALSE(target_.service.resume());
    expect_answers(done({4, 5, 2}));
    EXPECT_EQ(word(), sync::exclusive_word(5));
}

TEST_F(NetLocks, PassingStandsFirstBehindAnExclusiveHolder) {
    lock_locally();
    request(5, 1, Body().lock(LockAsk::Exclusive));
    request(3, 2, Body().lock(LockAsk::Barging));
    request(4, 3, Body().lock(LockAsk::Barging));
    expect_answers({});
    unlock_locally();
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({2, 3}));
    EXPECT_EQ(word(), sync::kQueued | 2u);
    request(3, 4, Body().unlock(LockAsk::Barging));
    request(4, 5, Body().unlock(LockAsk::Barging));
    EXPECT_FALSE(target_.service.resume());
    expect_answers(done({4, 5, 1}));
    EXPECT_EQ(word(), sync::exclusive_word(5));
}

TEST_F(NetLocks, AnUnlockHandsOverToALocalWaiter) {
    request(3, 1, Body().lock(LockAsk::Exclusive).put(0, 1));
    LockResult result{};
    std::thread waiter = local_waiter(kLocal, result);
    request(4, 2, Body().lock(LockAsk::Shared).get(0));  // behind the local one
    request(3, 3, Body().put(0, 2).unlock(LockAsk::Exclusive));
    waiter.join();
    EXPECT_EQ(result, LockResult::Granted);
    EXPECT_EQ(target_.words()[0], 2u);
    EXPECT_EQ(word() & ~sync::kQueued, sync::exclusive_word(kLocal));
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({1, 3}));
    unlock_locally();
    EXPECT_FALSE(target_.service.resume());
    expect_answers(done({2}));
}

// All requests stand in the queue with one cell: those that wait when it gets the lock follow each other, so that each
// has as many turns as a process of the node, and who comes later waits for the next round.
TEST_F(NetLocks, RequestsThatWaitTogetherFollowEachOther) {
    lock_locally();
    request(3, 1, Body().lock(LockAsk::Exclusive));
    LockResult result{};
    std::thread waiter = local_waiter(2, result);
    request(4, 2, Body().lock(LockAsk::Exclusive));
    request(5, 3, Body().lock(LockAsk::Exclusive).put(0, 7));
    unlock_locally();
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({1}));
    EXPECT_EQ(word(), sync::kQueued | sync::exclusive_word(3));
    request(3, 4, Body().unlock(LockAsk::Exclusive));
    request(3, 5, Body().lock(LockAsk::Exclusive));
    EXPECT_EQ(word(), sync::kQueued | sync::exclusive_word(4));
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({4, 2}));
    request(4, 6, Body().unlock(LockAsk::Exclusive));
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({6, 3}));
    EXPECT_EQ(target_.words()[0], 7u);
    EXPECT_EQ(word(), sync::kQueued | sync::exclusive_word(5));
    request(5, 7, Body().unlock(LockAsk::Exclusive));
    waiter.join();
    EXPECT_EQ(result, LockResult::Granted);
    EXPECT_EQ(word(), sync::kQueued | sync::exclusive_word(2));
    sync::LockContext context = target_.ranks.context(2);
    sync::unlock_exclusive(context, 0);
    EXPECT_FALSE(target_.service.resume());
    expect_answers(done({7, 5}));
    EXPECT_EQ(word(), sync::exclusive_word(3));
}

// Turns that follow do not pass who is inside a lock_all, and are not lost by that.
TEST_F(NetLocks, BargingRequestsPrecedeTheNextBatch) {
    lock_locally();
    request(3, 1, Body().lock(LockAsk::Exclusive));
    request(4, 2, Body().lock(LockAsk::Exclusive));
    unlock_locally();
    EXPECT_TRUE(target_.service.resume());
    request(2, 3, Body().lock(LockAsk::Exclusive));
    EXPECT_TRUE(target_.service.resume());  // 2 stands in the queue now, 4 does not
    request(5, 4, Body().lock(LockAsk::Barging));
    request(3, 5, Body().unlock(LockAsk::Exclusive));
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({1, 5, 4}));
    EXPECT_EQ(word(), sync::kQueued | 1u);
    request(5, 6, Body().unlock(LockAsk::Barging));
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({6, 2}));
    EXPECT_EQ(word() & ~sync::kQueued, sync::exclusive_word(4));
    request(4, 7, Body().unlock(LockAsk::Exclusive));
    EXPECT_FALSE(target_.service.resume());
    expect_answers(done({7, 3}));
    request(2, 8, Body().unlock(LockAsk::Exclusive));
    EXPECT_EQ(word(), 0u);
}

// The death of one in a row of turns is everybody's: they are refused, and nobody is forgotten.
TEST_F(NetLocks, ADeathInABatchOfGrantsRefusesTheOthers) {
    lock_locally();
    for (const std::uint32_t origin : {3u, 4u, 5u})
        request(origin, origin, Body().lock(LockAsk::Exclusive));
    unlock_locally();
    EXPECT_TRUE(target_.service.resume());
    request(3, 6, Body().unlock(LockAsk::Exclusive));
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({3, 6, 4}));
    std::vector<std::uint64_t> tokens;
    target_.service.holders(tokens);
    EXPECT_EQ(tokens, std::vector<std::uint64_t>{token_of(4)});
    target_.service.died(token_of(4));
    EXPECT_FALSE(target_.service.resume());
    expect_answers({{5, Status::HolderDied}});
}

// Many rounds of a local thread against requests: each excludes the other, and nobody is forgotten.
TEST_F(NetLocks, LocalProcessesAndRequestsTakeTurns) {
    const int rounds = times(20000, 2000);
    std::uint64_t& counter = target_.words()[0];  // plain: under the lock
    std::thread local([&] {
        for (int i = 0; i < rounds; ++i) {
            sync::LockContext context = target_.ranks.context(kLocal);
            if (!sync::try_lock_exclusive(target_.ranks.lock_cell(0), kLocal)) {
                EXPECT_EQ(sync::lock_wait(context, 0, LockKind::Exclusive), LockResult::Granted);
            }
            counter += 1;
            sync::unlock_exclusive(context, 0);
        }
    });
    for (int i = 0; i < rounds; ++i) {
        for (const std::uint32_t origin : {3u, 4u}) {
            request(origin, origin, Body().lock(LockAsk::Exclusive).sum(Opcode::Update, 0, 1));
            request(origin, origin, Body().unlock(LockAsk::Exclusive));
        }
        while (target_.service.resume())
            std::this_thread::yield();
        ASSERT_EQ(target_.take_answers().size(), 4u);
    }
    local.join();
    EXPECT_EQ(counter, 3u * static_cast<unsigned>(rounds));
    EXPECT_EQ(word(), 0u);
}

TEST_F(NetLocks, HoldersLearnThatOthersWait) {
    std::vector<std::uint64_t> tokens;
    request(3, 1, Body().lock(LockAsk::Exclusive));
    target_.service.holders(tokens);
    EXPECT_TRUE(tokens.empty());
    request(4, 2, Body().lock(LockAsk::Shared));
    target_.service.holders(tokens);
    EXPECT_EQ(tokens, std::vector<std::uint64_t>{token_of(3)});
}

TEST_F(NetLocks, TheDeathOfAHolderBreaksTheLock) {
    request(3, 1, Body().lock(LockAsk::Exclusive));
    LockResult result{};
    std::thread waiter = local_waiter(kLocal, result);
    request(4, 2, Body().lock(LockAsk::Exclusive));
    request(4, 3, Body().put(0, 3));
    request(5, 4, Body().lock(LockAsk::Barging));
    target_.service.died(token_of(2));  // holds nothing
    EXPECT_TRUE(target_.service.resume());
    expect_answers(done({1}));
    target_.service.died(token_of(3));
    waiter.join();
    EXPECT_EQ(result, LockResult::HolderDied);
    EXPECT_FALSE(target_.service.resume());
    expect_answers({{4, Status::HolderDied}, {2, Status::HolderDied}, {3, Status::HolderDied}});
    // What was to happen under it has not.
    EXPECT_EQ(target_.words()[0], 0u);
    EXPECT_EQ(target_.ask(4, Body().put(0, 3).get(0)).data.size(), 8u);
    // Nobody gets it any more, and who was refused may give back what it does not have.
    EXPECT_EQ(target_.ask(5, Body().lock(LockAsk::Shared)).status, Status::HolderDied);
    EXPECT_EQ(target_.ask(4, Body().unlock(LockAsk::Exclusive)).status, Status::Done);
    EXPECT_EQ(target_.ask(4, Body().put(8, 3)).status, Status::Done);
    EXPECT_EQ(target_.words()[0], 0u);
    EXPECT_EQ(target_.words()[1], 3u);
    sync::LockContext context = target_.ranks.context(2);
    EXPECT_EQ(sync::lock_wait(context, 0, LockKind::Shared), LockResult::HolderDied);
    EXPECT_EQ(context.dead_rank, 3u);
}

TEST_F(NetLocks, TheDeathOfASharedHolderBreaksTheLockForLaterRequests) {
    request(3, 1, Body().lock(LockAsk::Shared));
    request(4, 2, Body().lock(LockAsk::Barging));
    request(5, 3, Body().lock(LockAsk::Exclusive));
    target_.service.died(token_of(3));
    EXPECT_FALSE(target_.service.resume());
    expect_answers({{1, Status::Done}, {2, Status::Done}, {3, Status::HolderDied}});
    EXPECT_EQ(target_.ask(4, Body().unlock(LockAsk::Barging)).status, Status::Done);
}

// A process of the node that dies with the lock is noticed by its neighbours, and the request hears of it too.
TEST_F(NetLocks, TheDeathOfALocalHolderReachesRequests) {
    lock_locally();
    request(3, 1, Body().lock(LockAsk::Exclusive));
    LockResult result{};
    target_.ranks.lives().kill(kLocal);
    std::thread waiter([&] {
        sync::LockContext context = target_.ranks.context(2);
        result = sync::lock_wait(context, 0, LockKind::Exclusive);
    });
    waiter.join();
    EXPECT_EQ(result, LockResult::HolderDied);
    EXPECT_FALSE(target_.service.resume());
    expect_answers({{1, Status::HolderDied}});
}

// No local waiter looks for the dead here: whoever drives the network does.
TEST_F(NetLocks, TheDeathOfALocalHolderIsFoundForRequestsAlone) {
    lock_locally();
    request(3, 1, Body().lock(LockAsk::Exclusive));
    target_.service.look_for_dead();
    EXPECT_TRUE(target_.service.resume());
    target_.ranks.lives().kill(kLocal);
    target_.service.look_for_dead();
    EXPECT_FALSE(target_.service.resume());
    expect_answers({{1, Status::HolderDied}});
}

}  // namespace
}  // namespace osc::test
