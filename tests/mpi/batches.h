// Runs of small updates, long enough that some are delayed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "harness.h"
#include "windows.h"

namespace osct {

inline constexpr std::size_t kWords = 3 * 1024;  // three stripes
inline constexpr int kRun = 100;

inline std::int64_t look(const Window& window, std::size_t word) {
    return std::atomic_ref<std::int64_t>(window.base<std::int64_t>()[word]).load();
}

inline MPI_Aint byte_of(std::size_t word) {
    return static_cast<MPI_Aint>(word * sizeof(std::int64_t));
}

// Updates without a fast path, so many that the run is long.
inline void start_run(const Window& window, int target) {
    const std::int64_t nothing = 0;
    for (int i = 0; i < 40; ++i)
        CHECK_OK(MPI_Accumulate(&nothing, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_BXOR, window.handle()));
}

// Adds kRun to word 0 of this process, and looks whether a part is delayed.
inline void begin_run(const Window& window) {
    const std::int64_t before = look(window, 0);
    const std::int64_t one = 1;
    start_run(window, rank());
    for (int i = 0; i < kRun; ++i)
        CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T, MPI_SUM, window.handle()));
    if (served_by_osc()) CHECK(look(window, 0) < before + kRun);
}

}  // namespace osct
