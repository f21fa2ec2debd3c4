// MPI 4.1, 12.3.5: when the request of MPI_Rget is complete, the data is in the origin's buffer.
// case: MPI_Rget between strided datatypes: the data when the request is complete
#include "case.h"

int main() {
    begin();
    double* base = nullptr;
    double got[64];
    MPI_Win win = allocate(sizeof got, &base);
    MPI_Datatype strided;
    MPI_Type_vector(16, 2, 4, MPI_DOUBLE, &strided);
    MPI_Type_commit(&strided);
    for (int i = 0; i < 64; ++i)
        base[i] = 100 * rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < 100 && rank == 0; ++turn) {
        MPI_Request request;
        for (double& value : got)
            value = -1;
        SUCCEED(MPI_Rget(got, 1, strided, next, 0, 1, strided, win, &request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < 64; ++i)
            expect(got[i] == (i % 4 < 2 ? 100 * next + i : -1), "the request is complete before the data is there");
        MPI_Win_flush_all(win);
    }
    MPI_Win_unlock_all(win);
    MPI_Type_free(&strided);
    MPI_Win_free(&win);
    return end();
}
