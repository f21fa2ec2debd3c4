// MPI 4.1, 12.6: MPI_ERR_RMA_SYNC is the class for an operation outside of an epoch.
// case: mistake: a put outside of an epoch is MPI_ERR_RMA_SYNC
#include "case.h"

int main() {
    begin();
    int* base = nullptr;
    MPI_Win win = allocate(64, &base);
    const int mine = 1;
    expect(class_of(MPI_Put(&mine, 1, MPI_INT, next, 0, 1, MPI_INT, win)) == MPI_ERR_RMA_SYNC,
           "the put has another class, or none");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    return end();
}
