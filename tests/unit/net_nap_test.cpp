// The rest of the network's thread: ends by itself, lasts while somebody drives, and is ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "agent/nap.h"
#include "agent/network.h"

namespace osc::net {
namespace {

// Rests again and again until it is told; between rests it looks at what is asked.
class Thread {
  public:
    explicit Thread(Nap& nap)
        : nap_(nap), thread_([this] {
              for (;;) {
                  const std::uint32_t ended = nap_.ended();
                  if (over_.load()) return;
                  answered.store(asked.load());
                  nap_.rest(ended, now_ns());
                  rests.fetch_add(1);
              }
          }) {}
    ~Thread() {
        over_.store(true);
        nap_.end();
        thread_.join();
    }

    std::atomic<int> asked{0};
    std::atomic<int> answered{0};
    std::atomic<int> rests{0};

  private:
    Nap& nap_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

void drive(Nap& nap) {
    const std::int64_t now = now_ns();
    nap.prolong(now, now);
}

TEST(Nap, EndsByItself) {
    Nap nap;
    ASSERT_TRUE(nap.open());
    const std::int64_t before = now_ns();
    nap.rest(nap.ended(), before);
    EXPECT_GE(now_ns() - before, 100000);
}

TEST(Nap, IsNotBegunWhereItWasEnded) {
    Nap nap;
    ASSERT_TRUE(nap.open());
    int short_ones = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::uint32_t ended = nap.ended();
        nap.end();
        const std::int64_t before = now_ns();
        nap.rest(ended, before);
        short_ones += now_ns() - before < 100000 ? 1 : 0;
    }
    EXPECT_GT(short_ones, 100);
}

TEST(Nap, LastsWhileSomebodyDrives) {
    Nap nap;
    ASSERT_TRUE(nap.open());
    Thread thread(nap);
    // 20 ms without an end. If one comes, this thread must have been kept from driving for longer than there was time,
    // or the other one just when it went to rest.
    int longest = 0;
    int unexplained = 0;
    for (int attempt = 0; attempt < 100 && longest < 20; ++attempt) {
        const int rests = thread.rests.load();
        const std::int64_t begin = now_ns();
        std::int64_t now = begin;
        std::int64_t gap = 0;
        while (now - begin < 20000000 && thread.rests.load() <= rests + 1) {
            const std::int64_t before = std::exchange(now, now_ns());
            gap = std::max(gap, now - before);
            nap.prolong(now, now);
        }
        longest = static_cast<int>((now - begin) / 1000000);
        unexplained += longest < 20 && gap <= 10000 ? 1 : 0;
    }
    EXPECT_LT(unexplained, 10);
}

// Each of its drives takes longer than the shortest rest, but there is nothing between them.
TEST(Nap, LastsThroughLongDrives) {
    Nap nap;
    ASSERT_TRUE(nap.open());
    Thread thread(nap);
    bool lasted = false;
    int hindered = 0;  // attempts in which this thread was kept from driving
    for (int attempt = 0; attempt < 100 && !lasted; ++attempt) {
        const std::int64_t begin = now_ns();
        const int rests = thread.rests.load();
        std::int64_t end = begin;
        std::int64_t gap = 0;
        while (end - begin < 20000000) {
            const std::int64_t began = end;
            while (end - began < 70000)
                end = now_ns();
            gap = std::max(gap, end - began);
            nap.prolong(began, end);
        }
        lasted = thread.rests.load() < rests + 20;
        hindered += gap > 500000 ? 1 : 0;
    }
    EXPECT_TRUE(lasted || hindered > 50);
}

// It is not served by anybody between its drives, so the thread is there soon.
TEST(Nap, IsShortForWhoPauses) {
    Nap nap;
    ASSERT_TRUE(nap.open());
    Thread thread(nap);
    const std::int64_t begin = now_ns();
    while (thread.rests.load() < 20 && now_ns() - begin < 2000000000) {
        for (const std::int64_t paused = now_ns(); now_ns() - paused < 70000;) {
        }
        drive(nap);
    }
    EXPECT_GE(thread.rests.load(), 20);
}

TEST(Nap, IsEndedAlsoWhileSomebodyDrives) {
    Nap nap;
    ASSERT_TRUE(nap.open());
    Thread thread(nap);
    for (int turn = 1; turn <= 200; ++turn) {
        for (int i = 0; i < 100; ++i)
            drive(nap);
        thread.asked.store(turn);
        nap.end();
        const std::int64_t begin = now_ns();
        while (thread.answered.load() != turn && now_ns() - begin < 1000000000)
            drive(nap);
        ASSERT_EQ(thread.answered.load(), turn);
    }
}

}  // namespace
}  // namespace osc::net
