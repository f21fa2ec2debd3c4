// MPI 4.1, 6.9.2 and 12.3.4: MPI_LAND, MPI_LOR and MPI_LXOR give 0 or 1.
// case: MPI_LAND, MPI_LOR and MPI_LXOR of integers
#include "case.h"

int main() {
    begin();
    alignas(64) int memory[4] = {5, 5, 5, 5};
    int seen = 0;
    const int three = 3;
    MPI_Win win = create(memory, sizeof memory);
    MPI_Win_fence(0, win);
    SUCCEED(MPI_Accumulate(&three, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_LAND, win));
    SUCCEED(MPI_Accumulate(&three, 1, MPI_INT, next, 4, 1, MPI_INT, MPI_LOR, win));
    SUCCEED(MPI_Accumulate(&three, 1, MPI_INT, next, 8, 1, MPI_INT, MPI_LXOR, win));
    SUCCEED(MPI_Fetch_and_op(&three, &seen, MPI_INT, next, 12, MPI_LXOR, win));
    MPI_Win_fence(0, win);
    expect(memory[0] == 1 && memory[1] == 1, "the conjunction or disjunction of 5 and 3 is not 1");
    expect(memory[2] == 0 && memory[3] == 0 && seen == 5, "the exclusive disjunction of 5 and 3 is not 0");
    MPI_Win_free(&win);
    return end();
}
