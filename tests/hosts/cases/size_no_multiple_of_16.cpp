// MPI 4.1, 12.2.2: each process gets memory of at least its size, and displacements count from its base.
// case: allocated memory whose size is no multiple of 16
#include "case.h"

int main() {
    begin();
    char* base = nullptr;
    MPI_Win win = allocate(20, &base);
    for (int i = 0; i < 20; ++i)
        base[i] = 0;
    MPI_Win_fence(0, win);
    const char mine[20] = {1, 2, 3};
    SUCCEED(MPI_Put(mine, 20, MPI_CHAR, next, 0, 20, MPI_CHAR, win));
    MPI_Win_fence(0, win);
    expect(base[0] == 1 && base[1] == 2 && base[2] == 3, "the put is not at the window's base");
    MPI_Win_free(&win);
    return end();
}
