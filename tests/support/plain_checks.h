// Checks of a program with a main() of its own: it cannot end by a verdict of all ranks, because its network or its
// peers fail, or it begins and ends MPI in unusual places.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdio>

namespace osct {

using Clock = std::chrono::steady_clock;

inline int g_failures = 0;

inline void expect(bool good, const char* what) {
    if (good) return;
    ++g_failures;
    std::printf("FAILED: %s\n", what);
}

inline int class_of(int error) {
    int value = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &value);
    return value;
}

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace osct
