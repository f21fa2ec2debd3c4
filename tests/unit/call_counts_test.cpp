// Counts of calls by threads that run, that have ended, that are ending, and in the child of fork().
#include "api/call_counts.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace osc {
namespace {

constexpr std::uint64_t kCalls = 20000;
constexpr std::uint64_t kThreads = 6;

// Counts calls from a place on.
class Since {
  public:
    explicit Since(Entry entry) : entry_(entry), begin_(served_calls(entry)) {}
    [[nodiscard]] std::uint64_t calls() const { return served_calls(entry_) - begin_; }

  private:
    Entry entry_;
    std::uint64_t begin_;
};

void call(Entry entry, std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i)
        ASSERT_EQ(succeed(entry), 0);
}

TEST(CallCounts, EveryCallOfEveryThreadCountsOnce) {
    const Since puts(Entry::Put);
    const Since fences(Entry::Win_fence);
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t)
        threads.emplace_back([] {
            call(Entry::Put, kCalls);
            count_served(Entry::Win_fence);
        });
    call(Entry::Put, kCalls);
    threads.clear();
    EXPECT_EQ(puts.calls(), (kThreads + 1) * kCalls);
    EXPECT_EQ(fences.calls(), kThreads);
}

TEST(CallCounts, ARunningThreadCounts) {
    const Since gets(Entry::Get);
    std::atomic<std::uint64_t> made{0};
    std::atomic<bool> end{false};
    std::thread thread([&] {
        call(Entry::Get, kCalls);
        made.store(kCalls, std::memory_order_release);
        while (!end.load(std::memory_order_acquire))
            call(Entry::Get, 1), made.fetch_add(1, std::memory_order_release);
    });
    for (std::uint64_t before = 0, round = 0; round < 1000; ++round) {
        const std::uint64_t least = made.load(std::memory_order_acquire);
        const std::uint64_t now = gets.calls();
        EXPECT_GE(now, least);
        EXPECT_GE(now, before);
        before = now;
    }
    end.store(true, std::memory_order_release);
    thread.join();
    EXPECT_EQ(gets.calls(), made.load());
}

// Readers meet threads that come and go.
TEST(CallCounts, ThreadsEndWhileOthersRead) {
    const Since swaps(Entry::Compare_and_swap);
    std::atomic<bool> end{false};
    std::thread reader([&] {
        std::uint64_t before = 0;
        while (!end.load(std::memory_order_acquire)) {
            const std::uint64_t now = swaps.calls();
            EXPECT_GE(now, before);
            before = now;
        }
    });
    for (std::uint64_t round = 0; round < 50; ++round) {
        std::jthread first(call, Entry::Compare_and_swap, 10);
        std::jthread second(call, Entry::Compare_and_swap, 10);
    }
    end.store(true, std::memory_order_release);
    reader.join();
    EXPECT_EQ(swaps.calls(), 50U * 20U);
}

// Destroyed after the thread's counts, because it is made before them.
struct CallsAtItsEnd {
    bool is_used = false;
    ~CallsAtItsEnd() {
        if (is_used) call(Entry::Rput, 3);
    }
};
thread_local CallsAtItsEnd t_late;

TEST(CallCounts, CallsOfLaterDestructorsCount) {
    const Since requests(Entry::Rput);
    std::thread thread([] {
        t_late.is_used = true;
        call(Entry::Rput, 5);
    });
    thread.join();
    EXPECT_EQ(requests.calls(), 8U);
}

TEST(CallCounts, TheChildOfForkKeepsTheCounts) {
    const Since locks(Entry::Win_lock);
    std::atomic<bool> has_called{false};
    std::atomic<bool> end{false};
    std::thread thread([&] {
        call(Entry::Win_lock, 7);
        has_called.store(true, std::memory_order_release);
        while (!end.load(std::memory_order_acquire))
            std::this_thread::yield();
    });
    while (!has_called.load(std::memory_order_acquire))
        std::this_thread::yield();
    call(Entry::Win_lock, 2);
    const pid_t child = ::fork();
    if (child == 0) {
        call(Entry::Win_lock, 1);
        ::_exit(locks.calls() == 10 && (call(Entry::Win_lock, 1), locks.calls() == 11) ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    end.store(true, std::memory_order_release);
    thread.join();
    EXPECT_EQ(locks.calls(), 9U);
}

TEST(CallCounts, ForwardedCallsCountApart) {
    const std::uint64_t before = forwarded_calls(Entry::Win_post);
    const Since served(Entry::Win_post);
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t)
        threads.emplace_back([] {
            for (std::uint64_t i = 0; i < kCalls; ++i)
                count_forwarded(Entry::Win_post);
        });
    threads.clear();
    EXPECT_EQ(forwarded_calls(Entry::Win_post) - before, kThreads * kCalls);
    EXPECT_EQ(served.calls(), 0U);
}

}  // namespace
}  // namespace osc
