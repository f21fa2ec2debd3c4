// Which threads count as the program's while memory is exchanged. No MPI runs here, so no thread is UCX's.
#include "shm/other_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace osc::test {
namespace {

// A thread of this name that sleeps, and counts how often a signal has woken it.
class Sleeper {
  public:
    explicit Sleeper(const char* name)
        : thread_([this, name] {
              ::pthread_setname_np(::pthread_self(), name);
              named_ = true;
              while (!ends_) {
                  const timespec moment{0, 1'000'000};
                  if (::nanosleep(&moment, nullptr) != 0) ++woken_;
              }
          }) {
        while (!named_)
            std::this_thread::yield();
    }
    ~Sleeper() {
        ends_ = true;
        thread_.join();
        // A joined thread stays in the system's list for a moment.
        for (int i = 0; i < 1000 && shm::has_other_threads(); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    int woken() const { return woken_; }

  private:
    std::atomic<bool> named_{false};
    std::atomic<bool> ends_{false};
    std::atomic<int> woken_{0};
    std::thread thread_;
};

TEST(OtherThreads, NamesOfThreads) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the sanitizer has a thread of its own";
#endif
    EXPECT_FALSE(shm::has_other_threads());
    for (const char* name : {"worker", "async", "async-io", "asynchronous", "an osc-thread", ""}) {
        const Sleeper thread(name);
        EXPECT_TRUE(shm::has_other_threads()) << name;
    }
    const Sleeper own("osc-agent");
    EXPECT_FALSE(shm::has_other_threads());
    const Sleeper first("async");
    const Sleeper second("async");
    EXPECT_TRUE(shm::has_other_threads());
}

// What begins while the host starts is the host's, unless the program had a thread that could have begun it.
TEST(OtherThreads, ThreadsOfTheHostBeginWhileItStarts) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the sanitizer has a thread of its own";
#endif
    std::optional<Sleeper> of_host;
    {
        const shm::HostStarts starts;
        of_host.emplace("worker");
    }
    EXPECT_FALSE(shm::has_other_threads());
    {
        const shm::Handlers handlers;
        EXPECT_TRUE(handlers.wait());
    }
    std::optional<Sleeper> of_program(std::in_place, "worker");
    EXPECT_TRUE(shm::has_other_threads());
    std::optional<Sleeper> unknown;
    {
        const shm::HostStarts starts;
        unknown.emplace("worker");
    }
    of_program.reset();
    EXPECT_TRUE(shm::has_other_threads());
    unknown.reset();
    EXPECT_FALSE(shm::has_other_threads());
}

// The exchange of memory interrupts no thread of the program.
TEST(OtherThreads, ProgramsThreadsSleepOn) {
    const Sleeper thread("async");
    for (int i = 0; i < 50; ++i) {
        const shm::Handlers handlers;
        EXPECT_TRUE(handlers.wait());
    }
    EXPECT_EQ(thread.woken(), 0);
}

}  // namespace
}  // namespace osc::test
