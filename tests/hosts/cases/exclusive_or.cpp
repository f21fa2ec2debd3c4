// MPI 4.1, 6.9.2 and 12.3.4: MPI_BXOR combines the bits of integers.
// case: MPI_BXOR of MPI_LONG
#include "case.h"

int main() {
    begin();
    alignas(64) long memory[2] = {5, 5};
    const long three = 3;
    MPI_Win win = create(memory, sizeof memory);
    MPI_Win_fence(0, win);
    SUCCEED(MPI_Accumulate(&three, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_BXOR, win));
    MPI_Win_fence(0, win);
    expect(memory[0] == 6 && memory[1] == 5, "5 and 3 do not make 6");
    MPI_Win_free(&win);
    return end();
}
