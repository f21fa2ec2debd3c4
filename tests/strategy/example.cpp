// A strategy that only the tests have: chosen by the option and by the info key, reported by MPI_Win_get_info, agreed
// on by all processes, and used.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_fence", "MPI_Put", "MPI_Win_get_info")

namespace {

long fences_served() {
    const auto* count = static_cast<const std::atomic<long>*>(::dlsym(RTLD_DEFAULT, "osc_test_example_fences"));
    CHECK(count != nullptr);
    return count != nullptr ? count->load() : -1;
}

bool chosen_by_option() {
    const char* option = std::getenv("OSC_FENCE");
    return option != nullptr && std::strcmp(option, "example") == 0;
}

/// Fences around a put to the right neighbour, in a window whose info key is `key` on one process; returns the strategy
/// that the window reports.
std::string fence_with(const char* key) {
    MPI_Info info = MPI_INFO_NULL;
    if (key != nullptr && rank() == size() - 1) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "osc_fence", key);
    }
    long* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_allocate(sizeof(long), sizeof(long), info, MPI_COMM_WORLD, &base, &win));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    for (long round = 1; round <= 4; ++round) {
        const long value = round * 100 + rank();
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, right(), 0, 1, MPI_LONG, win));
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        CHECK_EQ(*base, round * 100 + left());
    }
    const std::string strategy = osct::info_value(win, "osc_fence");
    CHECK_OK(MPI_Win_free(&win));
    return strategy;
}

}  // namespace

CASE(the_option_chooses_it) {
    SKIP_IF(!chosen_by_option());
    const long before = fences_served();
    CHECK_EQ(fence_with(nullptr), std::string("example"));
    CHECK_EQ(fences_served() - before, 8L);
}

CASE(the_info_key_of_one_process_chooses_it_for_all) {
    SKIP_IF(chosen_by_option());
    const long before = fences_served();
    CHECK_EQ(fence_with("example"), std::string("example"));
    CHECK_EQ(fences_served() - before, 8L);
    CHECK_EQ(fence_with("immediate"), std::string("immediate"));
    CHECK_EQ(fences_served() - before, 8L);
}
