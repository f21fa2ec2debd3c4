// Which processes a wait is for, as the hang reporter reads it from a control table.
#include "sync/awaited.h"
#include "sync/pscw.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

using shm::WaitKind;
using sync::Relation;
using Found = std::vector<std::pair<std::uint32_t, Relation>>;

Found awaited_by(const Ranks& ranks, const sync::WaitQuestion& question, std::uint32_t* others = nullptr) {
    sync::Awaited awaited;
    sync::find_awaited(ranks.controls(), ranks.size(), question, awaited);
    Found found;
    for (std::uint32_t i = 0; i < awaited.count; ++i)
        found.emplace_back(awaited.ranks[i].rank, awaited.ranks[i].relation);
    if (others != nullptr) *others = awaited.others;
    return found;
}

TEST(Awaited, TheHoldersOfALock) {
    Ranks ranks(4);
    const sync::WaitQuestion question{WaitKind::Lock, 3, 0, 0};
    EXPECT_EQ(awaited_by(ranks, question), Found{});
    ASSERT_EQ(epoch::lock(ranks.core(1), 0, sync::LockKind::Shared, 0), Fault::None);
    ASSERT_EQ(epoch::lock(ranks.core(2), 1, sync::LockKind::Shared, 0), Fault::None);
    EXPECT_EQ(awaited_by(ranks, question), (Found{{1, Relation::HoldsShared}}));
    ASSERT_EQ(epoch::unlock(ranks.core(1), 0), Fault::None);
    ASSERT_EQ(epoch::lock(ranks.core(1), 0, sync::LockKind::Exclusive, 0), Fault::None);
    EXPECT_EQ(awaited_by(ranks, question), (Found{{1, Relation::HoldsExclusive}}));
    ASSERT_EQ(epoch::unlock(ranks.core(1), 0), Fault::None);
    ASSERT_EQ(epoch::unlock(ranks.core(2), 1), Fault::None);
}

TEST(Awaited, TheOriginsOfAnExposureEpoch) {
    const Deadline deadline(60);
    Ranks ranks(4);
    const std::uint32_t origins[] = {1, 2};
    const std::uint32_t target[] = {0};
    const sync::WaitQuestion question{WaitKind::Completes, 0, 0, 0};
    ASSERT_EQ(epoch::post(ranks.core(0), origins, 0), Fault::None);
    ASSERT_EQ(epoch::start(ranks.core(2), target, 0), Fault::None);
    EXPECT_EQ(awaited_by(ranks, question), (Found{{1, Relation::HasNotStarted}, {2, Relation::HasNotCompleted}}));
    ASSERT_EQ(epoch::start(ranks.core(1), target, 0), Fault::None);
    for (const std::uint32_t origin : origins)
        ASSERT_EQ(epoch::complete(ranks.core(origin)), Fault::None);
    EXPECT_EQ(awaited_by(ranks, question), Found{});
    ASSERT_EQ(epoch::wait(ranks.core(0)), Fault::None);
}

// More processes than an answer names are counted.
TEST(Awaited, TheAbsentOfABarrier) {
    constexpr std::uint32_t kFurther = 3;
    Ranks ranks(sync::Awaited::kMost + kFurther + 1);
    ranks.core(0).mine().barriers = 1;
    std::uint32_t others = 0;
    const Found found = awaited_by(ranks, {WaitKind::Barrier, 0, shm::kEveryTarget, 1}, &others);
    ASSERT_EQ(found.size(), sync::Awaited::kMost);
    EXPECT_EQ(found.front(), (std::pair{1u, Relation::HasNotEntered}));
    EXPECT_EQ(found.back(), (std::pair{sync::Awaited::kMost, Relation::HasNotEntered}));
    EXPECT_EQ(others, kFurther);
}

}  // namespace
}  // namespace osc::test
