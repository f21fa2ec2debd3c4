// A library of plugin.cpp's program, which loads it with RTLD_DEEPBIND.
#include <mpi.h>

extern "C" __attribute__((visibility("default"))) long count_at(MPI_Win win, int target) {
    const long one = 1;
    long before = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 0, MPI_SUM, win);
    MPI_Win_unlock(target, win);
    return before;
}
