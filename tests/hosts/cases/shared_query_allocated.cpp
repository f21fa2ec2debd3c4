// MPI 4.1, 12.2.3: a query of an allocated window gives the memory of a process, or the size 0.
// case: MPI_Win_shared_query of an allocated window (MPI 4.1)
#include "case.h"

int main() {
    begin();
    int* base = nullptr;
    MPI_Win win = allocate(64, &base);
    base[0] = 5 + rank;
    MPI_Win_fence(0, win);
    MPI_Aint bytes = -1;
    int unit = -1, *there = nullptr;
    SUCCEED(MPI_Win_shared_query(win, next, &bytes, &unit, &there));
    if (bytes != 0) expect(bytes == 64 && *there == 5 + next, "the query gives other memory");
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    return end();
}
