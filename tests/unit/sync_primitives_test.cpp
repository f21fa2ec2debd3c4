// Stripe locks, the barrier and post-start-complete-wait by ranks as threads.
// Level: gate
#include <algorithm>
#include <chrono>
#include <random>

#include "local/locked.h"
#include "sync/pscw.h"
#include "sync/stripe.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

TEST(Stripe, ExcludesAndOrders) {
    const Deadline deadline(120);
    const Waiting waiting(20, 50, 10);
    const int rounds = times(20000, 3000);
    Ranks ranks(8);
    long counter = 0;  // plain: ThreadSanitizer sees a missing order
    ranks.run([&](RankCore& core) {
        std::atomic<std::uint32_t>& holder = ranks.controls().block(0).stripe_of(0);
        std::uint32_t dead = 0;
        for (int i = 0; i < rounds; ++i) {
            ASSERT_TRUE(sync::stripe_lock(holder, core.me, ranks.lives(), dead));
            EXPECT_EQ(holder.load(std::memory_order_relaxed), core.me + 1);
            ++counter;
            sync::stripe_unlock(holder);
        }
    });
    EXPECT_EQ(counter, 8L * rounds);
}

TEST(Stripe, RunsCoverEveryElementOnceAtAnyAlignment) {
    Ranks ranks(1);
    shm::ControlBlock& block = ranks.controls().block(0);
    const shm::Stripes stripes{block, 0, ranks.lives()};
    for (const std::size_t width : {1u, 8u, 12u, 32u}) {
        for (const std::int64_t disp : {0, 1, 8185, 8191, 8192, 100000}) {
            std::size_t next = 0;
            EXPECT_EQ(shm::for_each_locked(stripes, disp, width, 5000,
                                           [&](std::size_t first, std::size_t n) {
                                               EXPECT_EQ(first, next);
                                               EXPECT_GT(n, 0u);
                                               // The lock is of the stripe in which the run's first bytes lie.
                                               const auto at = static_cast<std::uint64_t>(disp) + first * width;
                                               EXPECT_EQ(block.stripe_of(at).load(), 1u);
                                               const auto last = at + (n - 1) * width;
                                               EXPECT_EQ(at >> shm::kStripeShift, last >> shm::kStripeShift);
                                               next = first + n;
                                           }),
                      Fault::None);
            EXPECT_EQ(next, 5000u);
        }
    }
}

void barrier_rounds(int rounds) {
    constexpr std::uint32_t kRanks = 6;
    Ranks ranks(kRanks);
    std::array<int, kRanks> written{};
    ranks.run([&](RankCore& core) {
        shm::Barrier& barrier = ranks.controls().header().barrier;
        for (int i = 1; i <= rounds; ++i) {
            written[core.me] = i;
            ASSERT_TRUE(barrier.arrive_and_wait(kRanks, kNoneDead));
            for (const int seen : written)
                ASSERT_EQ(seen, i);
            ASSERT_TRUE(barrier.arrive_and_wait(kRanks, kNoneDead));
        }
    });
}

TEST(Barrier, NoProcessLeavesBeforeAllHaveArrived) {
    const Deadline deadline(120);
    const Waiting waiting(20, 50, 10);
    barrier_rounds(times(3000, 500));
}

TEST(Barrier, LosesNoWakeUp) {
    const Deadline deadline(120);
    const Waiting waiting(0, 0, 0);
    barrier_rounds(times(10000, 1000));
}

TEST(Barrier, ReportsTheDead) {
    const Deadline deadline(60);
    const Waiting waiting(0, 0, 10);
    Ranks ranks(2);
    shm::Barrier& barrier = ranks.controls().header().barrier;
    EXPECT_FALSE(barrier.arrive_and_wait(2, [] { return true; }));
    // An arrival in the failed round does not count in the next one.
    EXPECT_FALSE(barrier.arrive_and_wait(2, kNoneDead));
    EXPECT_FALSE(barrier.arrive_and_wait(2, kNoneDead));
}

TEST(Barrier, GivenUpByOneEndsForAll) {
    const Deadline deadline(60);
    const Waiting waiting(0, 0, 10);
    Ranks ranks(3);
    shm::Barrier& barrier = ranks.controls().header().barrier;
    std::jthread other([&] { EXPECT_FALSE(barrier.arrive_and_wait(3, kNoneDead)); });
    EXPECT_FALSE(barrier.arrive_and_wait(3, [] { return true; }));
}

// The groups of an epoch: every rank draws the same ones from the epoch's number.
std::vector<std::vector<std::uint32_t>> groups_of(std::uint32_t size, unsigned epoch) {
    std::minstd_rand random(epoch * 7919 + 1);
    std::vector<std::vector<std::uint32_t>> origins(size);
    for (std::uint32_t target = 0; target < size; ++target) {
        for (std::uint32_t origin = 0; origin < size; ++origin)
            if (random() % 3 != 0) origins[target].push_back(origin);
        std::shuffle(origins[target].begin(), origins[target].end(), random);
    }
    return origins;
}

// Random groups with some delayed posts: data of an epoch is visible after its wait, and no origin writes before the
// target's post. The words show a post taken for another one's, and a complete counted for another epoch.
void random_epochs(int epochs, bool delays) {
    constexpr std::uint32_t kRanks = 5;
    Ranks ranks(kRanks, kRanks);
    // [target][origin]: epoch + 1, or 0; relaxed, as their order is the post's and the complete's.
    std::array<std::array<std::atomic<std::uint64_t>, kRanks>, kRanks> exposed{}, written{};
    ranks.run([&](RankCore& core) {
        std::minstd_rand random(core.me + 17);
        for (int e = 0; e < epochs; ++e) {
            const std::uint64_t turn = static_cast<std::uint64_t>(e) + 1;
            const auto origins = groups_of(kRanks, static_cast<unsigned>(e));
            std::vector<std::uint32_t> targets;
            for (std::uint32_t t = 0; t < kRanks; ++t)
                if (std::count(origins[t].begin(), origins[t].end(), core.me) != 0) targets.push_back(t);
            std::shuffle(targets.begin(), targets.end(), random);
            if (delays && random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
            for (const std::uint32_t origin : origins[core.me])
                exposed[core.me][origin].store(turn, std::memory_order_relaxed);
            ASSERT_EQ(epoch::post(core, origins[core.me], 0), Fault::None);
            ASSERT_EQ(epoch::start(core, targets, 0), Fault::None);
            for (const std::uint32_t target : targets) {
                if (random() % 4 == 0) continue;  // a member of the group that is not used
                ASSERT_EQ(epoch::open_target(core, core.target(target)), Fault::None);
                ASSERT_EQ(exposed[target][core.me].load(std::memory_order_relaxed), turn);
                ranks.memory(target)[core.me] = turn;
                written[target][core.me].store(turn, std::memory_order_relaxed);
            }
            ASSERT_EQ(epoch::complete(core), Fault::None);
            if (random() % 2 == 0) {
                ASSERT_EQ(epoch::wait(core), Fault::None);
            } else {
                for (bool done = false; !done; std::this_thread::yield())
                    ASSERT_EQ(epoch::test(core, done), Fault::None);
            }
            for (const std::uint32_t origin : origins[core.me]) {
                exposed[core.me][origin].store(0, std::memory_order_relaxed);
                // Plain reads of the origins' data: only their completes order them.
                ASSERT_EQ(std::exchange(ranks.memory(core.me)[origin], 0),
                          written[core.me][origin].exchange(0, std::memory_order_relaxed));
            }
        }
    });
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(ranks.controls().block(rank).completes.load(), 0u);
        EXPECT_EQ(ranks.controls().block(rank).posts(0).load(), 0u);
    }
}

TEST(Pscw, RandomGroupsAndDelayedPosts) {
    const Deadline deadline(120);
    const Waiting waiting(20, 50, 10);
    random_epochs(times(3000, 400), true);
}

TEST(Pscw, LosesNoWakeUp) {
    const Deadline deadline(120);
    const Waiting waiting(0, 0, 0);
    random_epochs(times(5000, 600), false);
}

// One rank posts twice before another posts once: the second post of the first is not the post of the other.
TEST(Pscw, AnEarlyPostOfOneIsNotTakenForAnother) {
    const Deadline deadline(60);
    const Waiting waiting(0, 1, 10);
    Ranks ranks(3, 1);
    constexpr std::uint32_t kOrigin = 0;
    const std::uint32_t origin[] = {kOrigin};
    const std::uint32_t first[] = {1};
    const std::uint32_t both[] = {1, 2};
    std::thread early([&] {
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(epoch::post(ranks.core(1), origin, 0), Fault::None);
            EXPECT_EQ(epoch::wait(ranks.core(1)), Fault::None);
        }
    });
    std::atomic<bool> posted{false};
    std::thread late([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        posted = true;
        EXPECT_EQ(epoch::post(ranks.core(2), origin, 0), Fault::None);
        EXPECT_EQ(epoch::wait(ranks.core(2)), Fault::None);
    });
    RankCore& core = ranks.core(kOrigin);
    EXPECT_EQ(epoch::start(core, first, 0), Fault::None);
    EXPECT_EQ(epoch::complete(core), Fault::None);
    EXPECT_EQ(epoch::start(core, both, 0), Fault::None);
    EXPECT_EQ(epoch::complete(core), Fault::None);
    EXPECT_TRUE(posted);
    early.join();
    late.join();
}

TEST(Pscw, MoreThan64RanksHaveABitEach) {
    Ranks ranks(130, 1);
    for (const std::uint32_t rank : {0u, 63u, 64u, 129u}) {
        sync::send_post(ranks.controls(), rank, 5);
        EXPECT_TRUE(sync::take_post(ranks.controls(), 5, rank, [] { return true; }));
    }
    for (std::uint32_t word = 0; word < 3; ++word)
        EXPECT_EQ(ranks.controls().block(5).posts(word * 64).load(), 0u);
    EXPECT_EQ(ranks.controls().block(6).lock.word.load(), 0u);
}

}  // namespace
}  // namespace osc::test
