// Batches of updates: order, stripes that share a bucket, and a stripe whose holder died.
#include "transport/direct/batch.h"

#include <gtest/gtest.h>

#include <string>

#include "base/fault.h"
#include "epoch/updates.h"
#include "sync/stripe.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

// Appends the operand's digit, so that the order shows.
void append(void* target, const void* operand, std::size_t) {
    auto& word = *static_cast<std::uint64_t*>(target);
    word = 10 * word + *static_cast<const std::uint64_t*>(operand);
}

shm::ElementUpdate append_to(std::uint64_t& word, std::uint64_t digit) {
    return {reinterpret_cast<std::byte*>(&word), &append, {digit, 0, nullptr}};
}

TEST(Batch, KeepsTheOrderOfUpdatesOfOneElement) {
    Ranks ranks(2);
    auto& stripes = ranks.controls().block(1).stripes;
    shm::Batch batch(0, 2, ranks.lives());
    std::uint64_t words[2] = {};
    // Two stripes with one key: each add() performs what the bucket has for the other.
    for (const std::uint64_t digit : {1, 2, 3}) {
        batch.add(stripes[0].holder, 7, append_to(words[0], digit));
        batch.add(stripes[1].holder, 7, append_to(words[1], digit));
    }
    EXPECT_FALSE(batch.is_empty());
    EXPECT_EQ(words[1], 12u);
    EXPECT_EQ(batch.finish(), Fault::None);
    EXPECT_TRUE(batch.is_empty());
    EXPECT_EQ(words[0], 123u);
    EXPECT_EQ(words[1], 123u);
    for (const shm::Stripe& stripe : stripes)
        EXPECT_EQ(stripe.holder, 0u);
}

TEST(Batch, PerformsAFullBucket) {
    Ranks ranks(2);
    std::atomic<std::uint32_t>& stripe = ranks.controls().block(1).stripes[3].holder;
    shm::Batch batch(0, 2, ranks.lives());
    std::uint64_t word = 0;
    for (int i = 0; i < 1000; ++i) {
        const shm::ElementUpdate add = {
            reinterpret_cast<std::byte*>(&word), op::kernel(Op::Sum, Basic::U64), {1, 0, nullptr}};
        batch.add(stripe, 3, add);
    }
    EXPECT_GT(word, 900u);
    EXPECT_LT(word, 1000u);
    EXPECT_EQ(batch.finish(), Fault::None);
    EXPECT_EQ(word, 1000u);
}

TEST(Batch, SwapsOnlyWhatIsEqual) {
    Ranks ranks(2);
    std::atomic<std::uint32_t>& stripe = ranks.controls().block(1).stripes[0].holder;
    std::uint64_t word = 4;
    std::uint64_t results[2] = {};
    const auto swap = [&](std::uint64_t origin, std::uint64_t compare, std::uint64_t& result) {
        return shm::ElementUpdate{
            reinterpret_cast<std::byte*>(&word), &shm::swap<std::uint64_t>, {origin, compare, &result}};
    };
    shm::Batch batch(0, 2, ranks.lives());
    batch.add(stripe, 0, swap(5, 4, results[0]));
    batch.add(stripe, 0, swap(6, 4, results[1]));
    EXPECT_EQ(batch.finish(), Fault::None);
    EXPECT_EQ(word, 5u);
    EXPECT_EQ(results[0], 4u);
    EXPECT_EQ(results[1], 5u);
}

// The updates of that stripe are lost, those of the other are not; the call that completes operations returns the
// fault, once.
TEST(Batch, ReportsADeadHolderOfAStripeWhenOperationsAreCompleted) {
    const Deadline deadline(60);
    const Waiting waiting(10, 1, 10);
    Ranks ranks(3, 2048);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    const epoch::SmallUpdate add{op::kernel(Op::Sum, Basic::U64), 8, false, {1, 0, nullptr}};
    const auto add_to = [&](std::int64_t word) { return epoch::try_update(core, 1, word * 8, add); };
    for (int i = 0; i < 64; ++i)
        ASSERT_TRUE(add_to(1024));
    for (int i = 0; i < 8; ++i)
        ASSERT_TRUE(add_to(0));
    EXPECT_EQ(core.incomplete, 1u);
    EXPECT_EQ(ranks.memory(1)[0], 0u);

    std::uint32_t dead = 0;
    ASSERT_TRUE(sync::stripe_lock(ranks.controls().block(1).stripe_of(0), 2, ranks.lives(), dead));
    ranks.lives().kill(2);
    epoch::end_run(core);
    EXPECT_EQ(core.incomplete, 1u);
    EXPECT_EQ(ranks.memory(1)[1024], 64u);
    EXPECT_EQ(ranks.memory(1)[0], 0u);
    EXPECT_EQ(epoch::flush(core, 1), Fault::Dead);
    EXPECT_NE(std::string(base::fault_text()).find("rank 2 died in the middle of an accumulate"), std::string::npos);
    EXPECT_EQ(core.incomplete, 0u);
    EXPECT_EQ(epoch::flush(core, 1), Fault::None);
    EXPECT_EQ(epoch::unlock_all(core), Fault::None);
}

// After a short run an update with a fast path opens the target for the fast paths again; one without starts a run.
TEST(Batch, ShortRunsGoBackToTheFastPaths) {
    Ranks ranks(2);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    const epoch::SmallUpdate add{op::kernel(Op::Sum, Basic::U64), 8, true, {1, 0, nullptr}};
    const Peer& peer = core.peer(1);
    ASSERT_TRUE(epoch::try_update(core, 1, 0, add));
    EXPECT_TRUE(peer.batched);
    epoch::end_run(core);
    ASSERT_EQ(epoch::flush(core, 1), Fault::None);
    EXPECT_FALSE(epoch::try_update(core, 1, 0, add));
    EXPECT_FALSE(peer.batched);
    EXPECT_NE(peer.fast_limit, 0u);
    EXPECT_FALSE(epoch::may_update(core, 1, true));
    const epoch::SmallUpdate without_fast_path{add.apply, add.width, false, add.operands};
    ASSERT_TRUE(epoch::try_update(core, 1, 0, without_fast_path));
    EXPECT_TRUE(peer.batched);
    EXPECT_TRUE(epoch::may_update(core, 1, true));
    for (int i = 1; i < 100; ++i)
        ASSERT_TRUE(epoch::try_update(core, 1, 0, add));
    EXPECT_LT(ranks.memory(1)[0], 101u);
    epoch::end_run(core);
    EXPECT_EQ(ranks.memory(1)[0], 101u);
    // Behind a long run the next one is batched from its start.
    ASSERT_EQ(epoch::flush(core, 1), Fault::None);
    ASSERT_TRUE(epoch::try_update(core, 1, 0, add));
    EXPECT_EQ(ranks.memory(1)[0], 101u);
    epoch::end_run(core);
    EXPECT_EQ(epoch::unlock_all(core), Fault::None);
    EXPECT_FALSE(peer.batched);
}

}  // namespace
}  // namespace osc::test
