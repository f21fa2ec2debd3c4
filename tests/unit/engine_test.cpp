// The progress engine over a network that is a few counters: which thread polls in each situation of the policy, that
// no wake-up is lost, and that deferred work goes on.
#include "progress/engine.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "thread_ranks.h"

namespace osc::progress {
namespace {

using test::kNoneDead;
using test::soon;
using Ms = std::chrono::milliseconds;

/// Events come by arrive(), from any thread; poll() takes one.
class Fake final : public Driven {
  public:
    int poll() override {
        enter();
        polls.fetch_add(1);
        if (std::this_thread::get_id() == application_) own_polls.fetch_add(1);
        if (on_poll) on_poll();
        const int events = take();
        leave();
        return events;
    }
    int sleep(int ms) override {
        enter();
        sleeps.fetch_add(1);
        last_sleep.store(ms);
        asleep.store(true);
        std::unique_lock lock(mutex_);
        bell_.wait_for(lock, Ms(ms), [&] { return woken_ || waiting_.load() > 0; });
        woken_ = false;
        lock.unlock();
        asleep.store(false);
        const int events = take();
        leave();
        return events;
    }
    bool watch(int timer) override {
        timer_ = timer;
        return apart;
    }
    bool may_sleep() override {
        enter();
        const std::lock_guard lock(mutex_);
        listens = true;
        leave();
        return waiting_.load() == 0;
    }
    void ignore_events() override {
        const std::lock_guard lock(mutex_);
        listens = false;
    }
    bool await(int ms) override {
        sleeps.fetch_add(1);
        last_sleep.store(ms);
        asleep.store(true);
        const std::int64_t end = now_ns() + std::int64_t{ms} * 1000000;
        bool came = false;
        for (pollfd timer{timer_, POLLIN, 0}; !came && now_ns() < end && ::poll(&timer, 1, 0) == 0;) {
            std::unique_lock lock(mutex_);
            bell_.wait_for(lock, std::chrono::microseconds(100));
            came = listens && waiting_.load() > 0;
            if (std::exchange(woken_, false)) break;
        }
        asleep.store(false);
        return came;
    }
    void check_peers() override { checks.fetch_add(1); }
    bool retries_soon() const override { return soon.load(); }
    void wake() override {
        const std::lock_guard lock(mutex_);
        woken_ = true;
        wakes.fetch_add(1);
        bell_.notify_all();
    }
    bool has_transfers() const override { return transfers.load(); }
    bool has_unsent() const override { return false; }

    /// `announced`: a sleeping thread notices.
    void arrive(bool announced = true) {
        const std::lock_guard lock(mutex_);
        waiting_.fetch_add(1);
        if (announced) bell_.notify_all();
    }

    std::function<void()> on_poll;  // set before the engine starts
    bool apart = false;             // before the engine starts
    std::atomic<bool> asleep{false};
    std::atomic<bool> listens{false};
    std::atomic<int> polls{0};
    std::atomic<int> own_polls{0};  // by the thread that made this
    std::atomic<int> sleeps{0};
    std::atomic<int> last_sleep{0};
    std::atomic<int> wakes{0};
    std::atomic<int> checks{0};
    std::atomic<int> handled{0};
    std::atomic<int> inside{0};
    std::atomic<bool> overlapped{false};  // two threads were in handlers at once
    std::atomic<bool> soon{false};
    std::atomic<bool> transfers{false};

  private:
    void enter() {
        if (inside.fetch_add(1) != 0) overlapped.store(true);
    }
    void leave() { inside.fetch_sub(1); }
    int take() {
        const std::lock_guard lock(mutex_);
        if (waiting_.load() == 0) return 0;
        waiting_.fetch_sub(1);
        handled.fetch_add(1);
        return 1;
    }

    const std::thread::id application_ = std::this_thread::get_id();
    std::mutex mutex_;
    std::condition_variable bell_;
    bool woken_ = false;
    int timer_ = -1;
    std::atomic<int> waiting_{0};
};

// With `true` the network thread sleeps without the drive lock.
class Engine : public ::testing::TestWithParam<bool> {
  protected:
    void start(ProgressEngine::Mode mode) {
        std::string why;
        fake_.apart = GetParam();
        ASSERT_TRUE(engine_.start(mode, why)) << why;
    }
    void start_and_sleep() {
        start(ProgressEngine::Mode::Thread);
        ASSERT_TRUE(soon([&] { return fake_.asleep.load(); }));
    }
    void TearDown() override {
        engine_.stop();
        EXPECT_FALSE(fake_.overlapped.load());
    }
    Fake fake_;
    ProgressEngine engine_{fake_};
};

TEST_P(Engine, TheThreadHandlesWhatComesWhileTheProgramComputes) {
    start_and_sleep();
    for (int i = 1; i <= 100; ++i) {
        fake_.arrive();
        ASSERT_TRUE(soon([&] { return fake_.handled.load() == i; }));
    }
    EXPECT_EQ(fake_.own_polls.load(), 0);
    EXPECT_TRUE(soon([&] { return engine_.sleeps() == static_cast<std::uint64_t>(fake_.sleeps.load()); }));
}

TEST_P(Engine, AThreadThatWaitsPollsItself) {
    start_and_sleep();
    ASSERT_TRUE(engine_.wait([&] { return fake_.own_polls.load() >= 100; }, kNoneDead));
    // The network thread stays parked in a round without a pause; on a full machine this one may lose its core in some.
    int most = 20;
    for (int round = 0, handled = 0; round < 50 && most >= 20; ++round) {
        const int others = fake_.polls.load() - fake_.own_polls.load();
        for (int i = 0; i < 20; ++i, ++handled) {
            fake_.arrive();
            ASSERT_TRUE(engine_.wait([&] { return fake_.handled.load() > handled; }, kNoneDead));
        }
        most = fake_.polls.load() - fake_.own_polls.load() - others;
    }
    EXPECT_LT(most, 20);
}

// No handler runs while another thread has the drive lock, with which the thread may sleep.
TEST_P(Engine, SeizeTakesTheLockFromASleepingThread) {
    start_and_sleep();
    const std::int64_t begin = now_ns();
    {
        const auto lock = engine_.seize();
        const int polls = fake_.polls.load();
        std::this_thread::sleep_for(Ms(20));
        EXPECT_EQ(fake_.polls.load(), polls);
        EXPECT_FALSE(engine_.try_poll());
    }
    EXPECT_LT(now_ns() - begin, 400000000);
    EXPECT_EQ(fake_.wakes.load() > 0, !GetParam());
}

// A long wait sleeps; the network thread takes over, and its ring ends the wait.
TEST_P(Engine, ALongWaitIsTheThreads) {
    std::atomic<bool> done{false};
    fake_.on_poll = [&] {
        if (fake_.handled.load() > 0) {
            done.store(true, std::memory_order_seq_cst);
            engine_.ring();
        }
    };
    start(ProgressEngine::Mode::Thread);
    std::thread later([&] {
        std::this_thread::sleep_for(Ms(100));
        fake_.arrive();
    });
    EXPECT_TRUE(engine_.wait([&] { return done.load(std::memory_order_seq_cst); }, kNoneDead));
    later.join();
    EXPECT_LT(fake_.own_polls.load(), fake_.polls.load());
}

// So does one whose polls take long, because other threads have the core between them.
TEST_P(Engine, AWaitOfLongPollsIsTheThreads) {
    fake_.on_poll = [] { std::this_thread::sleep_for(Ms(1)); };
    start(ProgressEngine::Mode::Thread);
    EXPECT_FALSE(engine_.wait([] { return false; }, [] { return true; }));
    EXPECT_LT(fake_.own_polls.load(), 200);
}

TEST_P(Engine, AWaitIsGivenUpForTheDead) {
    start(ProgressEngine::Mode::Thread);
    EXPECT_FALSE(engine_.wait([] { return false; }, [] { return true; }));
}

TEST_P(Engine, StopEndsASleep) {
    start_and_sleep();
    engine_.stop();
    EXPECT_GT(fake_.wakes.load(), 0);
    const int polls = fake_.polls.load();
    std::this_thread::sleep_for(Ms(20));
    EXPECT_EQ(fake_.polls.load(), polls);
}

TEST_P(Engine, SleepsAreShortWhileARetryIsDue) {
    start_and_sleep();
    EXPECT_EQ(fake_.last_sleep.load(), Policy::kSleepMs);
    fake_.soon.store(true);
    engine_.wake_thread();
    EXPECT_TRUE(soon([&] { return fake_.last_sleep.load() == Policy::kRetrySleepMs; }));
}

TEST_P(Engine, ChecksPeersNowAndThen) {
    const std::int64_t begin = now_ns();
    start(ProgressEngine::Mode::Callers);
    for (int i = 0; i < 100; ++i)
        engine_.poll();
    const int checks = fake_.checks.load();
    if (now_ns() - begin < Policy::kPeerCheck) {
        EXPECT_EQ(checks, 1);
    }
    std::this_thread::sleep_for(Ms(210));
    engine_.poll();
    EXPECT_EQ(fake_.checks.load(), checks + 1);
}

// The first polls after a pause may come from a host that computes: they leave the parking of the thread alone, but
// take what there is. After some polls without an event the host polls no more.
TEST_P(Engine, TheHostPollsWhileMessagesCome) {
    start(ProgressEngine::Mode::Callers);
    engine_.host_polls();
    EXPECT_EQ(fake_.polls.load(), 0);  // no message has come yet
    fake_.arrive();
    engine_.poll();
    const int before = fake_.polls.load();
    for (int i = 0; i < 2 * Policy::kWarm; ++i)
        engine_.host_polls();
    EXPECT_EQ(fake_.polls.load() - before, Policy::kWarm);
    EXPECT_EQ(engine_.polls_of_host(), static_cast<std::uint64_t>(Policy::kWarm));
    // Announced direct accesses are worth more polls, several per call once the host is known to wait.
    engine_.expect_direct();
    const int direct = fake_.polls.load();
    for (int i = 0; i < Policy::kManyPolls + 10; ++i)
        engine_.host_polls();
    EXPECT_GE(fake_.polls.load() - direct, 10 * Policy::kDirectPolls);
}

TEST_P(Engine, TheThreadDoesNotSleepWhileDirectAccessesAreAnnounced) {
    start_and_sleep();
    int awake = 0;
    for (int i = 0; i < 20; ++i) {
        engine_.expect_direct();
        engine_.wake_thread();
        const int polls = fake_.polls.load();
        const int sleeps = fake_.sleeps.load();
        std::this_thread::sleep_for(Ms(1));
        awake += fake_.polls.load() - polls > 10 && fake_.sleeps.load() - sleeps <= 1 ? 1 : 0;
        std::this_thread::sleep_for(Ms(10));
    }
    EXPECT_GT(awake, 0);
}

// Handlers run under the drive lock; what they call must not wait for it.
TEST_P(Engine, AHandlerDoesNotPoll) {
    start(ProgressEngine::Mode::Callers);
    int inner = 0;
    fake_.on_poll = [&] {
        fake_.inside.fetch_sub(1);
        inner += engine_.try_poll() ? 1 : 0;
        engine_.keep_thread_parked(now_ns());
        fake_.inside.fetch_add(1);
    };
    fake_.arrive();
    fake_.arrive();
    EXPECT_TRUE(engine_.try_poll());
    EXPECT_EQ(inner, 0);
    EXPECT_EQ(fake_.handled.load(), 1);
}

class Work final : public DeferredWork {
  public:
    Left resume() override {
        resumed.fetch_add(1);
        return left.load();
    }
    std::atomic<int> resumed{0};
    std::atomic<Left> left{Left::Work};
};

TEST_P(Engine, EveryPollingThreadResumesTheBacklog) {
    start(ProgressEngine::Mode::Callers);
    Work work;
    engine_.backlog().enlist(work);
    for (int i = 1; i <= 5; ++i) {
        engine_.poll();
        EXPECT_EQ(work.resumed.load(), i);
    }
    work.left.store(DeferredWork::Left::Nothing);
    engine_.poll();
    engine_.poll();
    EXPECT_EQ(work.resumed.load(), 6);
}

// No event announces that busy work can go on, so the thread comes back after a short sleep.
TEST_P(Engine, TheThreadRetriesBusyWorkSoon) {
    start_and_sleep();
    Work work;
    work.left.store(DeferredWork::Left::Busy);
    engine_.backlog().enlist(work);
    engine_.wake_thread();
    EXPECT_TRUE(soon([&] { return work.resumed.load() > 5; }, 2000));
    EXPECT_EQ(fake_.last_sleep.load(), Policy::kRetrySleepMs);
    engine_.backlog().withdraw(work);
    const int resumed = work.resumed.load();
    std::this_thread::sleep_for(Ms(10));
    EXPECT_EQ(work.resumed.load(), resumed);
}

// The host polls beside the sleeping thread, which must come back soon for the work that they leave.
TEST_P(Engine, WorkThatStaysBusyWakesTheThread) {
    start_and_sleep();
    engine_.expect_direct();
    Work work;
    work.left.store(DeferredWork::Left::Busy);
    engine_.backlog().enlist(work);
    EXPECT_TRUE(soon([&] {
        engine_.host_polls();
        return fake_.wakes.load() > 0;
    }));
    engine_.backlog().withdraw(work);
}

// A thread that waits, or is about to, does not wake the sleeping thread, nor do events meanwhile. When it has stopped
// polling the sleeping thread serves again.
TEST_P(Engine, AThreadThatWaitsLeavesTheSleepingThreadAsleep) {
    if (!GetParam()) return;
    start_and_sleep();
    engine_.expect_wait();
    EXPECT_FALSE(fake_.listens.load());
    ASSERT_TRUE(soon([&] { return fake_.listens.load() && fake_.asleep.load(); }));
    fake_.arrive(false);
    ASSERT_TRUE(engine_.wait([&] { return fake_.handled.load() == 1; }, kNoneDead));
    fake_.arrive();
    EXPECT_TRUE(soon([&] { return fake_.handled.load() == 2; }));
    EXPECT_EQ(fake_.wakes.load(), 0);
}

// Application threads that wait, look in and seize, beside the network thread: no event is lost, and no wait hangs.
TEST_P(Engine, ManyThreads) {
    constexpr int kThreads = 3;
    constexpr int kEvents = 300;
    Work work;
    engine_.backlog().enlist(work);
    fake_.on_poll = [&] { engine_.ring(); };
    start(ProgressEngine::Mode::Thread);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < kEvents; ++i) {
                const int before = fake_.handled.load();
                fake_.arrive();
                if (t == 0) engine_.host_polls();
                if (i % 50 == 0) engine_.seize().unlock();
                EXPECT_TRUE(engine_.wait([&] { return fake_.handled.load() > before; }, kNoneDead));
                if (i % 100 == 0) std::this_thread::sleep_for(Ms(2));
            }
        });
    threads.clear();
    EXPECT_TRUE(soon([&] { return fake_.handled.load() == kThreads * kEvents; }));
    engine_.backlog().withdraw(work);
    EXPECT_GT(work.resumed.load(), 0);
}

// A message of another process needs memory: whichever thread handles the message, the process ends with a line.
TEST(EngineFaults, AHandlerWithoutMemoryEndsTheProcess) {
    const auto handle = [](ProgressEngine::Mode mode) {
        Fake fake;
        fake.on_poll = [] { throw std::bad_alloc(); };
        ProgressEngine engine(fake);
        std::string why;
        engine.start(mode, why);
        if (mode == ProgressEngine::Mode::Callers) engine.poll();
        std::this_thread::sleep_for(std::chrono::seconds(10));
    };
    for (const auto mode : {ProgressEngine::Mode::Callers, ProgressEngine::Mode::Thread})
        EXPECT_EXIT(handle(mode), ::testing::ExitedWithCode(1),
                    "cannot serve other processes any more: std::bad_alloc");
}

INSTANTIATE_TEST_SUITE_P(Sleeps, Engine, ::testing::Bool());

}  // namespace
}  // namespace osc::progress
