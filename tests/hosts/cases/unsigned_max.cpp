// MPI 4.1, 6.9.2 and 12.3.4: MPI_MAX and MPI_MIN of unsigned integers compare them as such.
// case: MPI_MAX and MPI_MIN of large unsigned integers
#include "case.h"

int main() {
    begin();
    alignas(64) unsigned memory[2] = {5, 5};
    const unsigned large = 0xFFFFFF00u + rank;
    MPI_Win win = create(memory, sizeof memory);
    MPI_Win_fence(0, win);
    SUCCEED(MPI_Accumulate(&large, 1, MPI_UNSIGNED, next, 0, 1, MPI_UNSIGNED, MPI_MAX, win));
    SUCCEED(MPI_Accumulate(&large, 1, MPI_UNSIGNED, next, 4, 1, MPI_UNSIGNED, MPI_MIN, win));
    MPI_Win_fence(0, win);
    expect(memory[0] == 0xFFFFFF00u + prev && memory[1] == 5, "the smaller number is the maximum");
    MPI_Win_free(&win);
    return end();
}
