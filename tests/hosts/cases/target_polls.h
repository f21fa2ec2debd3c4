// A target that polls its memory while an origin updates it: for two kinds of memory. MPI 4.1, 12.4 and 12.7.3.
#pragma once

#include "case.h"

inline int poll_for_update(MPI_Win win, int* base) {
    base[0] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        const int one = 1;
        int old = -1;
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        SUCCEED(MPI_Fetch_and_op(&one, &old, MPI_INT, 1, 0, MPI_REPLACE, win));
        MPI_Win_unlock(1, win);
    } else if (rank == 1) {
        while (__atomic_load_n(base, __ATOMIC_ACQUIRE) == 0)
            continue;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    return end();
}
