// The park of the network thread: it ends by itself, lasts while another thread polls, and ends when end() is called.
#include "progress/progress_park.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace osc::progress {
namespace {

// Rests again and again until the end; between rests it copies `asked` into `answered`.
class Thread {
  public:
    explicit Thread(ProgressPark& park)
        : park_(park), thread_([this] {
              for (;;) {
                  const std::uint32_t ended = park_.ended();
                  if (over_.load()) return;
                  answered.store(asked.load());
                  park_.rest(ended, now_ns());
                  rests.fetch_add(1);
              }
          }) {}
    ~Thread() {
        over_.store(true);
        park_.end();
        thread_.join();
    }

    std::atomic<int> asked{0};
    std::atomic<int> answered{0};
    std::atomic<int> rests{0};

  private:
    ProgressPark& park_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

void poll(ProgressPark& park) {
    const std::int64_t now = now_ns();
    park.prolong(now, now);
}

TEST(ProgressPark, EndsByItself) {
    ProgressPark park;
    ASSERT_TRUE(park.open());
    const std::int64_t before = now_ns();
    park.rest(park.ended(), before);
    EXPECT_GE(now_ns() - before, 100000);
}

TEST(ProgressPark, DoesNotBeginAfterAnEnd) {
    ProgressPark park;
    ASSERT_TRUE(park.open());
    int short_ones = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::uint32_t ended = park.ended();
        park.end();
        const std::int64_t before = now_ns();
        park.rest(ended, before);
        short_ones += now_ns() - before < 100000 ? 1 : 0;
    }
    EXPECT_GT(short_ones, 100);
}

TEST(ProgressPark, LastsWhileAnotherThreadPolls) {
    ProgressPark park;
    ASSERT_TRUE(park.open());
    Thread thread(park);
    // 20 ms without an end. If one comes, this thread must have been kept from polling for longer than the park allows,
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
            park.prolong(now, now);
        }
        longest = static_cast<int>((now - begin) / 1000000);
        unexplained += longest < 20 && gap <= 10000 ? 1 : 0;
    }
    EXPECT_LT(unexplained, 10);
}

// Each poll takes longer than the shortest park, but the thread does nothing between them.
TEST(ProgressPark, LastsThroughLongPolls) {
    ProgressPark park;
    ASSERT_TRUE(park.open());
    Thread thread(park);
    bool lasted = false;
    int hindered = 0;  // attempts in which this thread was kept from polling
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
            park.prolong(began, end);
        }
        lasted = thread.rests.load() < rests + 20;
        hindered += gap > 500000 ? 1 : 0;
    }
    EXPECT_TRUE(lasted || hindered > 50);
}

// No thread serves the process between its polls, so the network thread comes soon.
TEST(ProgressPark, IsShortForAThreadThatPauses) {
    ProgressPark park;
    ASSERT_TRUE(park.open());
    Thread thread(park);
    const std::int64_t begin = now_ns();
    while (thread.rests.load() < 20 && now_ns() - begin < 2000000000) {
        for (const std::int64_t paused = now_ns(); now_ns() - paused < 70000;) {
        }
        poll(park);
    }
    EXPECT_GE(thread.rests.load(), 20);
}

TEST(ProgressPark, EndsWhileAnotherThreadPolls) {
    ProgressPark park;
    ASSERT_TRUE(park.open());
    Thread thread(park);
    for (int turn = 1; turn <= 200; ++turn) {
        for (int i = 0; i < 100; ++i)
            poll(park);
        thread.asked.store(turn);
        park.end();
        const std::int64_t begin = now_ns();
        while (thread.answered.load() != turn && now_ns() - begin < 1000000000)
            poll(park);
        ASSERT_EQ(thread.answered.load(), turn);
    }
}

}  // namespace
}  // namespace osc::progress
