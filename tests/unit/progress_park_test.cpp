// The park of the network thread: it ends by itself, lasts while another thread polls, and ends when end() is called.
// Lengths are tested in simulated time: no test depends on when the system runs a thread.
#include "progress/progress_park.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.h"

namespace osc::progress {
namespace {

constexpr std::int64_t kMs = 1000000;

// A park in simulated time. Another thread polls at the multiples of `interval` (ns) until `last_poll`; `poll_length`
// is the time that each of its polls takes.
class SimulatedPark final : public ProgressPark {
  public:
    SimulatedPark(std::int64_t interval, std::int64_t poll_length, std::int64_t last_poll)
        : interval_(interval), poll_length_(poll_length), last_poll_(last_poll) {}

    void rest_once() {
        rest(ended(), now_);
        ++rests_;
    }
    void rest_until(std::int64_t end) {
        constexpr std::int64_t kBetweenRests = 13000;
        while (now_ < end) {
            rest_once();
            const std::int64_t next = now_ + kBetweenRests;
            while (poll_before(next)) {
            }
            now_ = next;
        }
    }
    std::int64_t now() const { return now_; }
    int rests() const { return rests_; }

  protected:
    void set_timer(std::int64_t ns) const override { end_ = now_ + ns; }
    void await_timer() override {
        while (poll_before(end_)) {
        }
        now_ = end_;
    }

  private:
    // The next poll, if it comes before `time`.
    bool poll_before(std::int64_t time) {
        const std::int64_t poll = (now_ / interval_ + 1) * interval_;
        if (poll > std::min(time, last_poll_)) return false;
        now_ = poll;
        prolong(poll - poll_length_, poll);
        return true;
    }

    std::int64_t interval_;
    std::int64_t poll_length_;
    std::int64_t last_poll_;
    std::int64_t now_ = 0;
    int rests_ = 0;
    mutable std::int64_t end_ = 0;
};

TEST(ProgressPark, EndsAfterItsShortestLengthWithoutPolls) {
    SimulatedPark park(1000, 0, 0);
    park.rest_once();
    EXPECT_EQ(park.now(), Policy::kParkShort);
}

// A park at whose end no peer waits was needed, so the next one is longer; a peer that waits makes them short again.
TEST(ProgressPark, GrowsWhileNoPeerWaits) {
    SimulatedPark park(1000, 0, 0);
    std::int64_t length = Policy::kParkShort;
    for (int i = 0; i < 10; ++i) {
        const std::int64_t before = park.now();
        park.rest_once();
        EXPECT_EQ(park.now() - before, length);
        park.was_missed(false);
        length = std::min(2 * length, Policy::kParkLongest);
    }
    park.was_missed(true);
    const std::int64_t before = park.now();
    park.rest_once();
    EXPECT_EQ(park.now() - before, Policy::kParkShort);
}

TEST(ProgressPark, DoesNotBeginAfterAnEnd) {
    SimulatedPark park(1000, 0, 0);
    const std::uint32_t ended = park.ended();
    park.end();
    park.rest(ended, park.now());
    EXPECT_EQ(park.now(), 0);
}

TEST(ProgressPark, LastsWhileAnotherThreadPolls) {
    SimulatedPark park(1000, 0, 20 * kMs);
    park.rest_once();
    EXPECT_GE(park.now(), 20 * kMs);
    EXPECT_LE(park.now(), 20 * kMs + Policy::kParkLongest);
}

// Each poll takes longer than the shortest park, but the thread does nothing between its polls. A poll that comes too
// late lets a park end; as soon as one comes in time, the parks last.
TEST(ProgressPark, LastsThroughLongPolls) {
    SimulatedPark park(160000, 160000, 20 * kMs);
    park.rest_until(20 * kMs);
    EXPECT_LT(park.rests(), 20);
}

// No thread serves the process between its polls, so the network thread comes soon.
TEST(ProgressPark, IsShortForAThreadThatPauses) {
    SimulatedPark park(160000, 0, 20 * kMs);
    park.rest_until(20 * kMs);
    EXPECT_GE(park.rests(), 20);
}

// The rest below uses the system's timer.

TEST(ProgressPark, EndsByItself) {
    ProgressPark park;
    ASSERT_TRUE(park.open());
    const std::int64_t before = now_ns();
    park.rest(park.ended(), before);
    EXPECT_GE(now_ns() - before, Policy::kParkShort);
}

// A thread rests again and again, and answers between its rests. Another polls, so that the parks get long, then calls
// end(): the answer must come although polling goes on.
TEST(ProgressPark, EndsWhileAnotherThreadPolls) {
    ProgressPark park;
    ASSERT_TRUE(park.open());
    std::atomic<int> asked{0};
    std::atomic<int> answered{0};
    std::atomic<bool> over{false};
    std::thread resting([&] {
        for (;;) {
            const std::uint32_t ended = park.ended();
            if (over.load()) return;
            answered.store(asked.load());
            park.rest(ended, now_ns());
        }
    });
    const auto poll = [&park] {
        const std::int64_t now = now_ns();
        park.prolong(now, now);
    };
    int turn = 1;
    for (bool came = true; came && turn <= 200; ++turn) {
        for (int i = 0; i < 100; ++i)
            poll();
        asked.store(turn);
        park.end();
        const std::int64_t begin = now_ns();
        while (answered.load() != turn && now_ns() - begin < 10000 * kMs)
            poll();
        came = answered.load() == turn;
        EXPECT_TRUE(came) << "turn " << turn;
    }
    over.store(true);
    park.end();
    resting.join();
}

}  // namespace
}  // namespace osc::progress
