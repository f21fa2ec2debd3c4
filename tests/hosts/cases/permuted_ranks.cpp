// MPI 4.1, 12.2: a window's ranks are those of its communicator, which may have any order of processes.
// case: shared windows over a communicator with another order of processes
// ranks: 4
#include "case.h"

int main() {
    begin();
    const int place[] = {2, 0, 3, 1};
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, place[rank], &comm);
    int me = 0;
    MPI_Comm_rank(comm, &me);
    for (int turn = 0; turn < 2; ++turn) {
        int* base = nullptr;
        MPI_Win win;
        SUCCEED(MPI_Win_allocate_shared(64 * (me + 1), 1, MPI_INFO_NULL, comm, &base, &win));
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        for (int i = 0; i < 4; ++i)
            base[i] = -1;
        MPI_Win_fence(0, win);
        for (int target = 0; target < 4; ++target) {
            const int value = 10 * me + target;
            SUCCEED(MPI_Put(&value, 1, MPI_INT, target, 4 * me, 1, MPI_INT, win));
        }
        MPI_Win_fence(0, win);
        for (int target = 0; target < 4; ++target) {
            MPI_Aint bytes = 0;
            int unit = 0, *there = nullptr;
            SUCCEED(MPI_Win_shared_query(win, target, &bytes, &unit, &there));
            expect(bytes == 64 * (target + 1), "a segment has another size");
            for (int i = 0; i < 4; ++i)
                expect(there[i] == 10 * i + target, "a put went to another process");
        }
        MPI_Win_fence(0, win);
        MPI_Win_free(&win);
    }
    MPI_Comm_free(&comm);
    return end();
}
