// lock_all beside exclusive locks: an epoch that holds the locks of some targets and comes to need others must not wait
// behind exclusive requests that wait for it.
#include <chrono>
#include <thread>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Win_lock", "MPI_Win_unlock", "MPI_Put")

// Ranks 0 and 3, which are on different nodes if there are two, are in a lock_all epoch and write to each other only
// after ranks 1 and 2 have requested their locks exclusively. No process may wait for ever, because lock_all may hold
// all locks from the start.
CASE_BY_KIND(crosswise_with_exclusive_waiters) {
    SKIP_IF(size() < 4);
    HOST_CANNOT("passive targets outside MPI make the host wait");
    Window win(kind, 64);
    const long value = rank() + 1;
    const int other = 3 - rank();
    const bool holds_all = rank() == 0 || rank() == 3;
    if (holds_all) {
        MPI_Win_lock_all(0, win);
        MPI_Put(&value, 1, MPI_LONG, rank(), win.at(rank(), 8), 1, MPI_LONG, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (holds_all) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the others are queued
        MPI_Put(&value, 1, MPI_LONG, other, win.at(other, 0), 1, MPI_LONG, win);
        MPI_Win_unlock_all(win);
    } else if (rank() < 4) {
        const int target = 3 * (rank() - 1);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Put(&value, 1, MPI_LONG, target, win.at(target, 16), 1, MPI_LONG, win);
        MPI_Win_unlock(target, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win);
    if (holds_all) {
        CHECK_EQ(win.base<long>()[0], other + 1L);
        CHECK_EQ(win.base<long>()[1], rank() + 1L);
        CHECK_EQ(win.base<long>()[2], rank() == 0 ? 2L : 3L);
    }
    MPI_Win_unlock(rank(), win);
}
