// What an operation asks of an RDMA device: work requests and registrations of memory, as count_work.cpp counts them in
// the process of the origin.
#include <dlfcn.h>

#include <cstdio>
#include <vector>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate", "MPI_Win_lock", "MPI_Put", "MPI_Get", "MPI_Accumulate",
             "MPI_Win_flush", "MPI_Win_unlock", "MPI_Win_free")

namespace {

using osct::rank;
using osct::size;

constexpr int kTimes = 40;
constexpr int kOthers = 3;  // signs of life, and announcements, may lie between

long count_of(const char* what) {
    static auto* const function = reinterpret_cast<long (*)(const char*)>(::dlsym(RTLD_DEFAULT, "rdma_count"));
    return function != nullptr ? function(what) : -1;
}

// Calls `operation` kTimes, each with a flush, in process 0; the work requests and registrations that it costs.
template <class Operation>
void measure(MPI_Win win, Operation&& operation, long& requests, long& registrations) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    operation();
    MPI_Win_flush(1, win);  // the lock is confirmed, and the caches are warm
    const long requests_before = count_of("requests");
    const long registrations_before = count_of("registrations");
    for (int i = 0; i < kTimes; ++i) {
        operation();
        MPI_Win_flush(1, win);
    }
    requests = count_of("requests") - requests_before;
    registrations = count_of("registrations") - registrations_before;
    MPI_Win_unlock(1, win);
}

}  // namespace

CASE(a_put_or_get_is_one_work_request_and_no_registration) {
    SKIP_IF(size() != 2 || count_of("requests") < 0);
    char* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    std::vector<char> own(1 << 20);
    for (const int bytes : {8, 64, 512, 4096, 65536}) {
        for (const bool put : {true, false}) {
            long requests = 0, registrations = 0;
            if (rank() == 0) {
                measure(
                    win,
                    [&] {
                        if (put)
                            MPI_Put(own.data(), bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, win);
                        else
                            MPI_Get(own.data(), bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, win);
                    },
                    requests, registrations);
                std::printf("%s of %d bytes: %.2f work requests, %ld registrations in %d\n", put ? "put" : "get", bytes,
                            static_cast<double>(requests) / kTimes, registrations, kTimes);
                CHECK(requests >= kTimes);
                CHECK(requests <= kTimes + kOthers);
                CHECK_EQ(registrations, 0L);
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    MPI_Win_free(&win);
}

CASE(an_accumulate_is_one_message) {
    SKIP_IF(size() != 2 || count_of("requests") < 0);
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    long requests = 0, registrations = 0;
    if (rank() == 0) {
        const long one = 1;
        measure(
            win, [&] { MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, win); }, requests, registrations);
        std::printf("accumulate: %.2f work requests, %ld registrations in %d\n", static_cast<double>(requests) / kTimes,
                    registrations, kTimes);
        CHECK(requests <= kTimes + kOthers);
        CHECK_EQ(registrations, 0L);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}
