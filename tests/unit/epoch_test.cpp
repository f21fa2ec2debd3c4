// The epoch state machine: the legal sequences of calls, those refused with Fault::Sync, and the locks of lock_all.
#include "core/epoch.h"

#include <functional>
#include <string>

#include "core/asserts.h"
#include "spanning_core.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

using sync::LockKind;

constexpr std::uint32_t kMe[] = {0};

// The states that a window of one process can be in, and how to get there.
struct State {
    const char* name;
    std::function<void(RankCore&)> enter;
};

// The calls, and the result of each in each state.
struct Step {
    const char* name;
    std::function<Fault(RankCore&)> call;
    std::string legal;  // one letter per state: 'y' legal, 'n' refused
};

Fault touch(RankCore& core) {
    return epoch::open_target(core, core.target(0));
}

std::vector<State> states() {
    return {
        {"nothing open", [](RankCore&) {}},
        {"fence(0), unused", [](RankCore& c) { epoch::fence(c, 0); }},
        {"fence(0), used", [](RankCore& c) { epoch::fence(c, 0), touch(c); }},
        {"post", [](RankCore& c) { epoch::post(c, kMe, 0); }},
        {"post and start", [](RankCore& c) { epoch::post(c, kMe, 0), epoch::start(c, kMe, 0); }},
        {"post, start and use", [](RankCore& c) { epoch::post(c, kMe, 0), epoch::start(c, kMe, 0), touch(c); }},
        {"lock", [](RankCore& c) { epoch::lock(c, 0, LockKind::Shared, 0); }},
        {"lock_all", [](RankCore& c) { epoch::lock_all(c, 0); }},
        {"fence(NOSUCCEED)", [](RankCore& c) { epoch::fence(c, epoch::kNoSucceed); }},
        {"lock after unlock", [](RankCore& c) { epoch::lock(c, 0, LockKind::Exclusive, 0), epoch::unlock(c, 0); }},
    };
}

std::vector<Step> steps() {
    bool done = false;
    return {
        // A letter for each of the states above, in order.
        {"fence", [](RankCore& c) { return epoch::fence(c, 0); }, "yyynnnnnyy"},
        {"post", [](RankCore& c) { return epoch::post(c, kMe, 0); }, "yynnnnyyyy"},
        {"start", [](RankCore& c) { return epoch::start(c, kMe, 0); }, "yynynnnnyy"},
        {"complete", [](RankCore& c) { return epoch::complete(c); }, "nnnnyynnnn"},
        {"wait after complete", [](RankCore& c) { return epoch::complete(c), epoch::wait(c); }, "nnn-yynnnn"},
        {"test", [done](RankCore& c) mutable { return epoch::test(c, done); }, "nnnyyynnnn"},
        {"lock", [](RankCore& c) { return epoch::lock(c, 1, LockKind::Shared, 0); }, "yynynnynyy"},
        {"lock of the same", [](RankCore& c) { return epoch::lock(c, 0, LockKind::Shared, 0); }, "yynynnnnyy"},
        {"unlock", [](RankCore& c) { return epoch::unlock(c, 0); }, "nnnnnnynnn"},
        {"unlock of another", [](RankCore& c) { return epoch::unlock(c, 1); }, "nnnnnnnnnn"},
        {"lock_all", [](RankCore& c) { return epoch::lock_all(c, 0); }, "yynynnnnyy"},
        {"unlock_all", [](RankCore& c) { return epoch::unlock_all(c); }, "nnnnnnnynn"},
        {"flush", [](RankCore& c) { return epoch::flush(c, 0); }, "nnnnnnyynn"},
        {"flush of another", [](RankCore& c) { return epoch::flush(c, 1); }, "nnnnnnyynn"},
        {"flush_all", [](RankCore& c) { return epoch::flush(c, Core::kEveryTarget); }, "nnnnnnyynn"},
        {"operation", [](RankCore& c) { return touch(c); }, "nyynyyyynn"},
        {"free", [](RankCore& c) { return epoch::may_free(c); }, "yyynnnnnyy"},
    };
}

TEST(Epoch, EveryCallInEveryState) {
    const Deadline deadline(60);
    const auto all = states();
    for (const Step& step : steps()) {
        ASSERT_EQ(step.legal.size(), all.size()) << step.name;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (step.legal[i] == '-') continue;
            SCOPED_TRACE(std::string(step.name) + " in state: " + all[i].name);
            // The window has two ranks so that there is another to lock; a fence takes part for both.
            Ranks ranks(2);
            RankCore& core = ranks.core(0);
            std::thread partner([&] {
                const int fences = (i == 1 || i == 2 || i == 8 ? 1 : 0) +
                                   (std::string(step.name) == "fence" && step.legal[i] == 'y' ? 1 : 0);
                for (int f = 0; f < fences; ++f)
                    epoch::fence(ranks.core(1), 0);
            });
            all[i].enter(core);
            const Fault fault = step.call(core);
            partner.join();
            EXPECT_EQ(fault, step.legal[i] == 'y' ? Fault::None : Fault::Sync) << base::fault_text();
            if (fault != Fault::None) {
                EXPECT_STRNE(base::fault_text(), "");
            }
        }
    }
}

// After a fence without operations every epoch may follow and end.
TEST(Epoch, EverythingMayFollowAnUnusedFence) {
    const Deadline deadline(60);
    Ranks ranks(1);
    RankCore& core = ranks.core(0);
    for (int round = 0; round < 3; ++round) {
        ASSERT_EQ(epoch::fence(core, 0), Fault::None);
        ASSERT_EQ(epoch::lock(core, 0, LockKind::Exclusive, 0), Fault::None);
        ASSERT_EQ(touch(core), Fault::None);
        ASSERT_EQ(epoch::unlock(core, 0), Fault::None);
        ASSERT_EQ(epoch::fence(core, 0), Fault::None);
        ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
        ASSERT_EQ(epoch::unlock_all(core), Fault::None);
        ASSERT_EQ(epoch::fence(core, 0), Fault::None);
        ASSERT_EQ(epoch::post(core, kMe, 0), Fault::None);
        ASSERT_EQ(epoch::start(core, kMe, 0), Fault::None);
        ASSERT_EQ(touch(core), Fault::None);
        ASSERT_EQ(epoch::complete(core), Fault::None);
        ASSERT_EQ(epoch::wait(core), Fault::None);
        ASSERT_EQ(epoch::fence(core, 0), Fault::None);
        ASSERT_EQ(touch(core), Fault::None);
    }
    EXPECT_EQ(epoch::lock(core, 0, LockKind::Shared, 0), Fault::Sync);
}

TEST(Epoch, LocksOfSeveralTargetsNest) {
    Ranks ranks(4);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock(core, 1, LockKind::Exclusive, 0), Fault::None);
    ASSERT_EQ(epoch::lock(core, 2, LockKind::Shared, 0), Fault::None);
    ASSERT_EQ(epoch::lock(core, 3, LockKind::Exclusive, epoch::kNoCheck), Fault::None);
    EXPECT_EQ(ranks.lock_cell(1).word.load(), sync::kExclusive | 1);
    EXPECT_EQ(ranks.lock_cell(2).word.load(), 1u);
    EXPECT_EQ(ranks.lock_cell(3).word.load(), 0u);
    EXPECT_EQ(epoch::open_target(core, core.target(0)), Fault::Sync);
    EXPECT_EQ(epoch::start(core, kMe, 0), Fault::Sync);
    ASSERT_EQ(epoch::unlock(core, 2), Fault::None);
    EXPECT_EQ(epoch::fence(core, 0), Fault::Sync);
    EXPECT_EQ(epoch::unlock(core, 2), Fault::Sync);
    ASSERT_EQ(epoch::unlock(core, 1), Fault::None);
    ASSERT_EQ(epoch::unlock(core, 3), Fault::None);
    for (std::uint32_t rank = 0; rank < 4; ++rank)
        EXPECT_EQ(ranks.lock_cell(rank).word.load(), 0u);
    EXPECT_EQ(epoch::may_free(core), Fault::None);
}

TEST(Epoch, OnlyTheGroupOfAStartMayBeUsed) {
    const Deadline deadline(60);
    Ranks ranks(3);
    RankCore& core = ranks.core(0);
    const std::uint32_t group[] = {2};
    ASSERT_EQ(epoch::post(ranks.core(2), kMe, 0), Fault::None);
    ASSERT_EQ(epoch::start(core, group, 0), Fault::None);
    EXPECT_EQ(epoch::open_target(core, core.target(1)), Fault::Sync);
    EXPECT_EQ(epoch::open_target(core, core.target(2)), Fault::None);
    ASSERT_EQ(epoch::complete(core), Fault::None);
    ASSERT_EQ(epoch::wait(ranks.core(2)), Fault::None);
    EXPECT_EQ(core.targets[2].fast_limit.load(), 0u);
}

TEST(Epoch, EmptyGroupsDoNotWait) {
    const Deadline deadline(60);
    Ranks ranks(2);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::post(core, {}, 0), Fault::None);
    ASSERT_EQ(epoch::start(core, {}, 0), Fault::None);
    ASSERT_EQ(epoch::complete(core), Fault::None);
    ASSERT_EQ(epoch::wait(core), Fault::None);
}

TEST(LockAll, TakesOnlyTheOwnLockUntilATargetIsUsed) {
    Ranks ranks(4);
    RankCore& core = ranks.core(1);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    EXPECT_EQ(ranks.lock_cell(1).word.load(), 1u);
    EXPECT_EQ(ranks.lock_cell(2).word.load(), 0u);
    ASSERT_EQ(epoch::open_target(core, core.target(2)), Fault::None);
    ASSERT_EQ(epoch::open_target(core, core.target(2)), Fault::None);
    EXPECT_EQ(ranks.lock_cell(2).word.load(), 1u);
    EXPECT_EQ(ranks.lock_cell(3).word.load(), 0u);
    EXPECT_FALSE(sync::try_lock_exclusive(ranks.lock_cell(2), 0));
    ASSERT_EQ(epoch::unlock_all(core), Fault::None);
    for (std::uint32_t rank = 0; rank < 4; ++rank)
        EXPECT_EQ(ranks.lock_cell(rank).word.load(), 0u);
    EXPECT_EQ(core.targets[2].fast_limit.load(), 0u);
}

TEST(LockAll, WithNoCheckTakesNothing) {
    Ranks ranks(2);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, epoch::kNoCheck), Fault::None);
    ASSERT_EQ(epoch::open_target(core, core.target(1)), Fault::None);
    EXPECT_EQ(ranks.lock_cell(0).word.load(), 0u);
    EXPECT_EQ(ranks.lock_cell(1).word.load(), 0u);
    ASSERT_EQ(epoch::unlock_all(core), Fault::None);
    EXPECT_EQ(epoch::open_target(core, core.target(1)), Fault::Sync);
}

// A process with pointers to a peer's memory may load and store there without a call, so it must hold the lock from
// then on.
TEST(LockAll, HoldsEveryLockOncePointersWereGiven) {
    Ranks ranks(3);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    ASSERT_EQ(epoch::open_target(core, core.target(2)), Fault::None);
    ASSERT_EQ(epoch::pointers_given(core), Fault::None);
    for (std::uint32_t rank = 0; rank < 3; ++rank)
        EXPECT_EQ(ranks.lock_cell(rank).word.load(), 1u) << rank;
    ASSERT_EQ(epoch::unlock_all(core), Fault::None);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    for (std::uint32_t rank = 0; rank < 3; ++rank)
        EXPECT_EQ(ranks.lock_cell(rank).word.load(), 1u) << rank;
    ASSERT_EQ(epoch::unlock_all(core), Fault::None);
    for (std::uint32_t rank = 0; rank < 3; ++rank)
        EXPECT_EQ(ranks.lock_cell(rank).word.load(), 0u) << rank;
}

// OSC_CHECK: the epoch after a false MPI_MODE_NOCHECK takes its locks, whichever rank's lock made it false.
TEST(LockAll, AFalseNoCheckIsReportedAndNotObeyed) {
    for (const std::uint32_t target : {0u, 1u}) {
        Ranks ranks(3);
        RankCore& core = ranks.core(2);
        const std::uint64_t holder = sync::exclusive_word(1 - target);
        EXPECT_TRUE(sync::try_lock_as(ranks.lock_cell(target), holder));
        EXPECT_EQ(epoch::checked_lock_all(core, epoch::kNoCheck), Fault::Assert);
        EXPECT_EQ(sync::try_unlock_as(ranks.lock_cell(target), holder), sync::Released::Yes);
        EXPECT_EQ(epoch::open_target(core, core.target(target)), Fault::None);
        EXPECT_EQ(ranks.lock_cell(target).word.load(), 1u);
        EXPECT_EQ(epoch::unlock_all(core), Fault::None);
    }
}

// Every call that completes operations waits for those in flight, returns their fault, and still does the rest of its
// work.
TEST(Epoch, CompletingCallsCompleteOperations) {
    using Targets = std::vector<std::uint32_t>;
    const auto leave = [](RankCore& core, std::uint32_t target) {
        ASSERT_EQ(epoch::open_target(core, core.target(target)), Fault::None);
        core.incomplete = 1;
        core.late = Fault::Range;
        core.settled.clear();
        epoch::mark_incomplete(core, core.target(target));
    };
    const Targets all{Core::kEveryTarget};
    {
        Ranks ranks(2);
        RankCore& core = ranks.core(0);
        for (const LockKind kind : {LockKind::Exclusive, LockKind::Shared}) {
            ASSERT_EQ(epoch::lock(core, 1, kind, 0), Fault::None);
            leave(core, 1);
            EXPECT_EQ(epoch::try_unlock<false>(core, 1), sync::Released::No);
            EXPECT_EQ(epoch::flush(core, 1, reach::Completion::AtOrigin), Fault::None);
            EXPECT_EQ(epoch::flush(core, Core::kEveryTarget, reach::Completion::AtOrigin), Fault::None);
            EXPECT_EQ(core.settled, Targets{});
            EXPECT_EQ(epoch::flush(core, 1), Fault::Range);
            EXPECT_EQ(core.settled, Targets{1});
            EXPECT_EQ(epoch::flush(core, 1), Fault::None);
            leave(core, 1);
            EXPECT_EQ(epoch::flush(core, Core::kEveryTarget), Fault::Range);
            EXPECT_EQ(core.settled, all);
            leave(core, 1);
            EXPECT_EQ(epoch::unlock(core, 1), Fault::Range);
            EXPECT_EQ(core.settled, Targets{1});
            EXPECT_EQ(core.target(1).held_lock, HeldLock::None);
            EXPECT_EQ(ranks.lock_cell(1).word.load(), 0u);
        }
        ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
        EXPECT_EQ(core.flushable, 2u);
        leave(core, 1);
        EXPECT_EQ(core.flushable, 0u);
        EXPECT_EQ(epoch::flush(core, 1), Fault::Range);
        EXPECT_EQ(core.flushable, 2u);
        leave(core, 0);
        EXPECT_EQ(epoch::unlock_all(core), Fault::Range);
        EXPECT_EQ(core.settled, all);
        EXPECT_EQ(core.epoch.access, Access::None);
        EXPECT_EQ(ranks.lock_cell(1).word.load(), 0u);
    }
    Ranks ranks(1);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::fence(core, 0), Fault::None);
    leave(core, 0);
    EXPECT_EQ(epoch::fence(core, epoch::kNoSucceed), Fault::Range);
    EXPECT_EQ(core.settled, all);
    EXPECT_EQ(core.epoch.access, Access::None);
    ASSERT_EQ(epoch::post(core, kMe, 0), Fault::None);
    ASSERT_EQ(epoch::start(core, kMe, 0), Fault::None);
    leave(core, 0);
    EXPECT_EQ(epoch::complete(core), Fault::Range);
    EXPECT_EQ(core.settled, Targets{0});
    EXPECT_EQ(epoch::wait(core), Fault::None);
}

// Messages of the host may overtake the complete, which only MPI_Win_test of the target shows.
TEST(Epoch, CompleteAwaitsATargetOfAnotherNodeThatTests) {
    constexpr std::uint32_t kThere[] = {1};
    Ranks ranks(2);
    SpanningCore core(ranks, 0);
    for (const bool tests : {false, true}) {
        core.tests = tests;
        ASSERT_EQ(epoch::start(core, kThere, epoch::kNoCheck), Fault::None);
        core.incomplete = 1;
        EXPECT_EQ(epoch::complete(core), Fault::None);
        EXPECT_EQ(core.until, tests ? reach::Completion::AtTarget : reach::Completion::AtOrigin);
    }
}

}  // namespace
}  // namespace osc::test
