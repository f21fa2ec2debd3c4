// AdoptionHistory: small memory at once, large memory in its second window, and ever later if it does not last.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/adopt/history.h"

namespace {

using osc::shm::AdoptionHistory;
constexpr std::uintptr_t kBase = std::uintptr_t{1} << 30, kLarge = 16 * AdoptionHistory::kSmall;

}  // namespace

TEST(AdoptionHistory, SmallMemoryPaysAtOnce) {
    AdoptionHistory history;
    for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(history.pays(kBase, kBase + (1 << 20) + 4096));  // malloc(1 MiB), with the page of its header
}

TEST(AdoptionHistory, LargeMemoryPaysInItsSecondWindow) {
    AdoptionHistory history;
    EXPECT_FALSE(history.pays(kBase, kBase + kLarge));
    EXPECT_FALSE(history.pays(kBase + 2 * kLarge, kBase + 3 * kLarge));
    EXPECT_TRUE(history.pays(kBase + kLarge / 2, kBase + kLarge));
    EXPECT_TRUE(history.pays(kBase + 2 * kLarge, kBase + 4 * kLarge));
}

TEST(AdoptionHistory, MemoryThatIsFreedForEachWindowPaysEverLater) {
    AdoptionHistory history;
    int adoptions = 0;
    for (int window = 1; window <= 62; ++window) {
        const bool pays = history.pays(kBase, kBase + kLarge);
        adoptions += pays ? 1 : 0;
        EXPECT_EQ(pays, window == 2 || window == 6 || window == 14 || window == 30 || window == 62) << window;
    }
    EXPECT_EQ(adoptions, 5);
}

TEST(AdoptionHistory, ForgetsTheOldestRanges) {
    AdoptionHistory history;
    for (std::uintptr_t i = 0; i < 65; ++i)
        EXPECT_FALSE(history.pays(kBase + i * kLarge, kBase + (i + 1) * kLarge));
    EXPECT_TRUE(history.pays(kBase + 64 * kLarge, kBase + 65 * kLarge));
    EXPECT_FALSE(history.pays(kBase, kBase + kLarge));
}
