// What an operation asks of an RDMA device and of the kernel in the process of the origin: work requests and
// registrations of memory, as count_work.cpp counts them, and system calls of the thread that calls MPI, as the kernel
// counts them.
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate", "MPI_Win_lock", "MPI_Put", "MPI_Get", "MPI_Accumulate",
             "MPI_Win_flush", "MPI_Win_unlock", "MPI_Win_free")

namespace {

constexpr int kTimes = 40;
constexpr int kOthers = 3;  // signs of life, and announcements, may lie between

long count_of(const char* what) {
    static auto* const function = reinterpret_cast<long (*)(const char*)>(::dlsym(RTLD_DEFAULT, "rdma_count"));
    return function != nullptr ? function(what) : -1;
}

// System calls of the calling thread, by the kernel's counter. Not clock_gettime, which is none where the kernel trusts
// the processor's counter; nor sched_yield, by which a wait that has become long lets others run.
class SystemCalls {
  public:
    SystemCalls() {
        std::FILE* const file = std::fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "r");
        unsigned long long event = 0;
        if (file == nullptr) return;
        const int read = std::fscanf(file, "%llu", &event);
        std::fclose(file);
        if (read != 1) return;
        perf_event_attr wanted{};
        wanted.type = PERF_TYPE_TRACEPOINT;
        wanted.size = sizeof wanted;
        wanted.config = event;
        const std::string filter =
            "id != " + std::to_string(SYS_clock_gettime) + " && id != " + std::to_string(SYS_sched_yield);
        descriptor_ = static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0));
        if (descriptor_ >= 0 && ::ioctl(descriptor_, PERF_EVENT_IOC_SET_FILTER, filter.c_str()) != 0) descriptor_ = -1;
    }

    [[nodiscard]] bool counts() const { return descriptor_ >= 0; }
    [[nodiscard]] long count() const {
        unsigned long long value = 0;
        return ::read(descriptor_, &value, sizeof value) == sizeof value ? static_cast<long>(value) : -1;
    }

  private:
    int descriptor_ = -1;
};

const SystemCalls g_system_calls;

// What kTimes operations, each with its flush, cost the process of the origin: work requests and registrations of all,
// and the system calls of the one with the fewest. A wait yields, then sleeps, when it becomes long, which in an
// emulator is a matter of its speed; what every operation costs, that one costs too.
struct Costs {
    long requests = 0;
    long registrations = 0;
    long system_calls = 0;
};

void print(const char* what, const Costs& costs) {
    std::printf("%s: %.2f work requests, %ld registrations in %d, %ld system calls at least\n", what,
                static_cast<double>(costs.requests) / kTimes, costs.registrations, kTimes, costs.system_calls);
}

// soft-RoCE rings its doorbell by a system call; an adapter does so by a store. It takes milliseconds for a large
// transfer, whose wait sleeps.
void check(const Costs& costs, int bytes) {
    CHECK(costs.requests <= kTimes + kOthers);
    CHECK_EQ(costs.registrations, 0L);
    if (bytes <= 4096) CHECK(costs.system_calls <= 1);
}

// Process 0 calls `operation` kTimes, each with a flush.
template <class Operation>
Costs measure(MPI_Win win, Operation&& operation) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    operation();
    MPI_Win_flush(1, win);  // the lock is confirmed, and the caches are warm
    const long requests = count_of("requests");
    const long registrations = count_of("registrations");
    long least = std::numeric_limits<long>::max();
    for (int i = 0; i < kTimes; ++i) {
        const long before = g_system_calls.count();
        operation();
        MPI_Win_flush(1, win);
        least = std::min(least, g_system_calls.count() - before - 1);  // the reading itself is one
    }
    const Costs costs{count_of("requests") - requests, count_of("registrations") - registrations, least};
    MPI_Win_unlock(1, win);
    return costs;
}

}  // namespace

CASE(a_put_or_get_is_one_work_request_and_no_registration) {
    SKIP_IF(size() != 2 || count_of("requests") < 0 || !g_system_calls.counts());
    char* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    std::vector<char> own(1 << 20);
    for (const int bytes : {8, 64, 512, 4096, 65536}) {
        for (const bool put : {true, false}) {
            if (rank() == 0) {
                const Costs costs = measure(win, [&] {
                    if (put)
                        MPI_Put(own.data(), bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, win);
                    else
                        MPI_Get(own.data(), bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, win);
                });
                print(((put ? "put of " : "get of ") + std::to_string(bytes) + " bytes").c_str(), costs);
                CHECK(costs.requests >= kTimes);
                check(costs, bytes);
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    MPI_Win_free(&win);
}

CASE(an_accumulate_is_one_message) {
    SKIP_IF(size() != 2 || count_of("requests") < 0 || !g_system_calls.counts());
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank() == 0) {
        const long one = 1;
        const Costs costs = measure(win, [&] { MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win); });
        print("accumulate", costs);
        check(costs, sizeof one);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}
