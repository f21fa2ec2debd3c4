// Assertions: a condition that does not hold ends the process with its text, in the builds that have the tier, and is
// not evaluated in the others; and invariants of the library are among them.
#include <gtest/gtest.h>

#include "base/assert.h"
#include "shm/spans.h"
#include "spanning_core.h"

namespace osc::test {
namespace {

constexpr int kLevel = OSC_ASSERTS;

// True; counts its calls.
bool counted(int& calls) {
    ++calls;
    return true;
}

TEST(Assertions, AreEvaluatedInTheirTierOnly) {
    int calls = 0;
    OSC_ASSERT(counted(calls));
    EXPECT_EQ(calls, kLevel >= 1 ? 1 : 0);
    OSC_ASSERT_SLOW(counted(calls));
    EXPECT_EQ(calls, kLevel);
}

TEST(AssertionsDeathTest, EndTheProcessWithTheirText) {
    if (kLevel < 1) GTEST_SKIP() << "this build has no assertions";
    EXPECT_DEATH(OSC_ASSERT(kLevel < 0), "invariant kLevel < 0 does not hold .*base_assert_test");
}

TEST(AssertionsDeathTest, FreeRangesDoNotOverlap) {
    if (kLevel < 1) GTEST_SKIP() << "this build has no assertions";
    shm::FreeSpans spans;
    spans.give(64, 64);
    EXPECT_DEATH(spans.give(96, 64), "spans.cpp");
    EXPECT_DEATH(spans.give(32, 64), "spans.cpp");
}

TEST(AssertionsDeathTest, APeerWithoutEpochIsNotOpen) {
    if (kLevel < 2) GTEST_SKIP() << "this build has no slow assertions";
    Ranks ranks(3);
    SpanningCore core(ranks, 0);
    Target& target = core.target(1);
    EXPECT_TRUE(core.is_consistent());
    target.allow();
    EXPECT_DEATH(StateGuard{core}, "is_consistent");
}

}  // namespace
}  // namespace osc::test
