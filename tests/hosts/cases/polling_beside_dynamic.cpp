// MPI 4.1, 12.7.3: an operation ends, also while its target waits in calls on another window.
// case: a process that polls one window, and is the target of a dynamic one
#include "case.h"

int main() {
    begin();
    int* flag = nullptr;
    static int data[16];
    MPI_Win win = allocate(64, &flag), dynamic = create_dynamic();
    SUCCEED(MPI_Win_attach(dynamic, data, sizeof data));
    *flag = 0, data[0] = 5 + rank;
    const MPI_Aint there = address_at(0, data);
    if (rank == 0) {
        for (int seen = 0; seen == 0;) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            SUCCEED(MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
            MPI_Win_unlock(0, win);
        }
    } else if (rank == 1) {
        int got = 0;
        const int one = 1;
        MPI_Request request;
        compute(0.2);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, dynamic);
        SUCCEED(MPI_Rget(&got, 1, MPI_INT, 0, there, 1, MPI_INT, dynamic, &request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_unlock(0, dynamic);
        expect(got == 5, "the get brought other data");
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        SUCCEED(MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    SUCCEED(MPI_Win_detach(dynamic, data));
    MPI_Win_free(&dynamic), MPI_Win_free(&win);
    return end();
}
