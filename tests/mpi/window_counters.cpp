// The statistics of osc_counter while other threads make and free the windows that they are about.
#include <atomic>
#include <memory>
#include <thread>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Win_allocate", "MPI_Win_free")

CASE(counters_follow_the_windows) {
    HOST_CANNOT("it has no such counters");
    const long long windows = osct::counter("windows.live"), bytes = osct::counter("bytes.window_metadata");
    {
        const Window a(WindowKind::Allocate, 64), b(WindowKind::Create, 64);
        CHECK_EQ(osct::counter("windows.live"), windows + 2);
        CHECK(osct::counter("bytes.window_metadata") > bytes);
    }
    CHECK_EQ(osct::counter("windows.live"), windows);
    CHECK_EQ(osct::counter("bytes.window_metadata"), bytes);
    CHECK_EQ(osct::counter("no.such.counter"), -1);
}

// With freed memory overwritten (MALLOC_PERTURB_, or AddressSanitizer), a window that a counter reads too late shows.
CASE(counters_while_windows_are_freed) {
    HOST_CANNOT("it has no such counters");
    constexpr int kAsking = 2;
    std::atomic<bool> stop{false};
    std::atomic<long> asked{0};
    std::vector<std::jthread> asking;
    for (int i = 0; i < kAsking; ++i)
        asking.emplace_back([&] {
            while (!stop.load(std::memory_order_relaxed)) {
                const long long bytes = osct::counter("bytes.window_metadata");
                CHECK(bytes >= 0 && bytes < 1 << 20);
                CHECK(osct::counter("windows.live") <= 30);
                asked.fetch_add(1, std::memory_order_relaxed);
            }
        });
    for (int round = 0; round < 50; ++round) {
        std::vector<std::unique_ptr<Window>> windows;
        for (int i = 0; i < 30; ++i)
            windows.push_back(std::make_unique<Window>(WindowKind::Create, 64, MPI_COMM_SELF));
        const long before = asked.load(std::memory_order_relaxed);
        while (asked.load(std::memory_order_relaxed) == before)
            std::this_thread::yield();
    }
    stop.store(true, std::memory_order_relaxed);
}
