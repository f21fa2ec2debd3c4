// MPI 4.1, 12.3.2: the data of a get must fit into the origin's buffer.
// case: mistake: a get of more data than the origin has room for
#include "case.h"

int main() {
    begin();
    alignas(64) int memory[16];
    int got[16];
    for (int i = 0; i < 16; ++i)
        memory[i] = 5, got[i] = -1;
    MPI_Win win = create(memory, sizeof memory);
    MPI_Win_fence(0, win);
    const int error = MPI_Get(got, 2, MPI_INT, next, 0, 4, MPI_INT, win);
    MPI_Win_fence(0, win);
    expect(got[2] == -1 && got[3] == -1, "the get wrote behind the buffer");
    expect(error != MPI_SUCCESS, "the get succeeds");
    MPI_Win_free(&win);
    return end();
}
