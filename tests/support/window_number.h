// A window's number for osc_window_stat().
#pragma once

#include <mpi.h>

inline int number_of(MPI_Win window) {
#ifdef MPI_ABI_VERSION
    return MPI_Win_toint(window);
#else
    return MPI_Win_c2f(window);
#endif
}
