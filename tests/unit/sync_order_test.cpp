// The store-buffer litmus of flush and MPI_Win_sync: two threads store, and then load what the other one stores.
// Without a full barrier between the two, both may load the old value, on x86-64 too.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "core/epoch.h"

namespace osc::test {
namespace {

struct alignas(128) Side {
    std::atomic<int> value{0};
    std::atomic<std::uint32_t> order{epoch::kPollEvery};
    int seen = 0;
    int due = 0;
};

TEST(Order, NoLoadPassesAnEarlierStore) {
    constexpr int kRounds = 20000;
    std::array<Side, 2> sides;
    std::atomic<int> arrived{0};
    int both_old = 0;
    // Both go on within nanoseconds, if each has a core.
    const auto meet = [&](int arrivals) {
        arrived.fetch_add(1);
        for (int polls = 1; arrived.load() < arrivals; ++polls)
            if (polls % 10000 == 0) std::this_thread::yield();
    };
    const auto play = [&](int me) {
        Side& mine = sides[static_cast<std::size_t>(me)];
        Side& other = sides[static_cast<std::size_t>(1 - me)];
        for (int round = 0; round < kRounds; ++round) {
            meet(4 * round + 2);
            mine.value.store(1, std::memory_order_relaxed);
            if (epoch::order_and_count(mine.order)) {
                mine.order.store(epoch::kPollEvery, std::memory_order_relaxed);
                ++mine.due;
            }
            mine.seen = other.value.load(std::memory_order_relaxed);
            meet(4 * round + 4);
            mine.value.store(0, std::memory_order_relaxed);
            if (me == 0 && mine.seen == 0 && other.seen == 0) ++both_old;
        }
    };
    std::thread second(play, 1);
    play(0);
    second.join();
    EXPECT_EQ(both_old, 0);
    EXPECT_EQ(sides[0].due, kRounds / static_cast<int>(epoch::kPollEvery));
}

}  // namespace
}  // namespace osc::test
