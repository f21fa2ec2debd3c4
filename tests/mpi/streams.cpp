// Long streams of operations to one target: a million in one epoch take bounded memory and arrive. libfabric is loaded
// only when a window needs it.
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Accumulate", "MPI_Put", "MPI_Win_flush", "MPI_Win_allocate")

namespace {

long peak_kib() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

bool is_loaded(const std::string& library) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(library) != std::string::npos) return true;
    return false;
}

// Open MPI 5 and 6 link libfabric themselves, as Debian builds them.
const bool kHostLinksLibfabric = is_loaded("libfabric");

// A variable's value from the launcher, before libosc may have set it.
std::string given(const char* variable, const char* otherwise) {
    const char* value = std::getenv(variable);
    return value != nullptr ? value : otherwise;
}
const std::string kBuffer = given("FI_OFI_RXM_BUFFER_SIZE", kHostLinksLibfabric ? "16384" : "2304");
const std::string kBuffers = given("FI_OFI_RXM_MSG_RX_SIZE", "512");

}  // namespace

CASE(a_million_accumulates_and_puts_in_one_epoch) {
    constexpr int kOperations = 1000000;
    constexpr int kElements = 500;
    long* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(2 * kElements * static_cast<MPI_Aint>(sizeof(long)), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &base, &win);
    for (int i = 0; i < 2 * kElements; ++i)
        base[i] = 0;
    MPI_Win_fence(0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    const int target = right();
    const long before = peak_kib();
    MPI_Win_lock_all(0, win);
    const long one = 1;
    for (long i = 0; i < kOperations; ++i) {
        MPI_Accumulate(&one, 1, MPI_LONG, target, i % kElements, 1, MPI_LONG, MPI_SUM, win);
        if (i % 16 == 0) {
            const long value = i;
            MPI_Put(&value, 1, MPI_LONG, target, kElements + i % kElements, 1, MPI_LONG, win);
            CHECK_OK(MPI_Win_flush_local(target, win));
        }
    }
    CHECK_OK(MPI_Win_flush(target, win));
    MPI_Win_unlock_all(win);
    CHECK(peak_kib() - before < 16 * 1024);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win);
    for (int i = 0; i < kElements; ++i) {
        CHECK_EQ(base[i], static_cast<long>(kOperations / kElements));
        // Every fourth element has a put, of a value that belongs there.
        const long put = base[kElements + i];
        CHECK(i % 4 == 0 ? put % 16 == 0 && put % kElements == i : put == 0);
    }
    MPI_Win_unlock(rank(), win);
    MPI_Win_free(&win);
}

CASE(the_network_is_loaded_when_a_window_needs_it) {
    SKIP_IF(!osct::served_by_osc());
    CHECK_EQ(is_loaded("libosc_ofi"), !osct::on_one_node());
    CHECK_EQ(is_loaded("libfabric"), kHostLinksLibfabric || !osct::on_one_node());
}

CASE(the_users_settings_of_libfabric_stay) {
    SKIP_IF(!osct::served_by_osc() || osct::on_one_node());
    CHECK_EQ(given("FI_OFI_RXM_BUFFER_SIZE", ""), kBuffer);
    CHECK_EQ(given("FI_OFI_RXM_MSG_RX_SIZE", ""), kBuffers);
}

CASE(a_process_inside_the_host_looks_for_messages_itself) {
    const bool wanted = osct::debug_setting("host_progress_hook") != "0";
    SKIP_IF(!osct::served_by_osc() || osct::on_one_node());
    long* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    *base = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const long long before = osct::counter("network.host_polls");
    if (rank() == 0) {
        int target = size() - 1;
        while (osct::same_node(target))
            --target;
        const long one = 1;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        for (int i = 0; i < 2000; ++i) {
            MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win);
            MPI_Win_flush(target, win);
        }
        MPI_Win_unlock(target, win);
    }
    // The target waits here while its application thread or the network thread executes the operations.
    MPI_Barrier(MPI_COMM_WORLD);
    long long polls = osct::counter("network.host_polls") - before;
    long long all_polls = 0;
    MPI_Allreduce(&polls, &all_polls, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(all_polls > 0, wanted);
    long sum = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win);
    MPI_Reduce(base, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Win_unlock(rank(), win);
    if (rank() == 0) CHECK_EQ(sum, 2000L);
    MPI_Win_free(&win);
}
