// The model by which `auto` chooses between immediate and deferred fences.
#include "sync/costs.h"

#include <gtest/gtest.h>

namespace osc::sync {
namespace {

constexpr Costs kTwoNodes{10000, 0.5, 1};

TEST(Costs, EmptyEpochsCostTheirFencesAndWantNothing) {
    const Predicted none = predict({10000, 0.5, 3}, {});
    EXPECT_DOUBLE_EQ(none.immediate, 60000);
    EXPECT_DOUBLE_EQ(none.deferred, 60000);
    EXPECT_EQ(wanted(none, {}), kNothing);
}

TEST(Costs, MessagesSaveTheirReply) {
    const Traffic traffic{4000, 0};
    const Predicted one = predict(kTwoNodes, traffic);
    EXPECT_DOUBLE_EQ(one.immediate, 20000 + 2000 + 20000);
    EXPECT_DOUBLE_EQ(one.deferred, 20000 + 2000);
    EXPECT_EQ(wanted(one, traffic), kDeferred);
}

TEST(Costs, DirectAccessesPayForTheTargetsFence) {
    const Traffic traffic{0, 65536};
    const Predicted large = predict(kTwoNodes, traffic);
    EXPECT_DOUBLE_EQ(large.deferred - large.immediate, 20000);
    EXPECT_EQ(wanted(large, traffic), kImmediate);
}

// Where there is much else to send, the target has answered by then.
TEST(Costs, ManyMessagesHideThat) {
    const Traffic traffic{1 << 20, 65536};
    const Predicted both = predict(kTwoNodes, traffic);
    EXPECT_DOUBLE_EQ(both.immediate, both.deferred);
    EXPECT_EQ(wanted(both, traffic), kDeferred);
}

TEST(Costs, AreDescribedInText) {
    EXPECT_EQ(text_of(kTwoNodes), "a message's way 10.0 us, 0.50 ns a byte, 1 round of messages in a barrier");
    EXPECT_EQ(text_of({1500, 1, 2}), "a message's way 1.5 us, 1.00 ns a byte, 2 rounds of messages in a barrier");
}

}  // namespace
}  // namespace osc::sync
