// MPI 4.1, 12.2: a window may have one process.
// case: windows of a job of one process
// ranks: 1
#include "case.h"

int main() {
    begin();
    alignas(64) int memory[4] = {};
    int got = 0, *base = nullptr;
    const int mine = 5;
    MPI_Win wins[] = {create(memory, sizeof memory), allocate(64, &base)};
    for (MPI_Win& win : wins) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        SUCCEED(MPI_Put(&mine, 1, MPI_INT, 0, 4, 1, MPI_INT, win));
        MPI_Win_flush(0, win);
        SUCCEED(MPI_Get(&got, 1, MPI_INT, 0, 4, 1, MPI_INT, win));
        MPI_Win_unlock(0, win);
        expect(got == 5, "the get brought other data");
        MPI_Win_free(&win);
    }
    return end();
}
