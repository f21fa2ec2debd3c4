// MPI 4.1, 12.2.1: the processes of a communicator make a window, whatever windows others make at the same time.
// case: windows of two halves of the processes at the same time
// ranks: 4
#include "case.h"

int main() {
    begin();
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    int me = 0;
    MPI_Comm_rank(half, &me);
    for (int round = 0; round < 200; ++round) {
        alignas(64) const int value = 1000 * rank + round;
        int got = -1;
        MPI_Win win = create((void*)&value, sizeof value, half);
        MPI_Win_lock_all(0, win);
        SUCCEED(MPI_Get(&got, 1, MPI_INT, 1 - me, 0, 1, MPI_INT, win));
        MPI_Win_unlock_all(win);
        expect(got == 1000 * ((rank + 2) % 4) + round, "a get read the memory of another window");
        MPI_Barrier(half);
        MPI_Win_free(&win);
    }
    MPI_Comm_free(&half);
    return end();
}
