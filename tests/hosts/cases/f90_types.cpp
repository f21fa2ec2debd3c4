// MPI 4.1, 19.1.9: a datatype of MPI_Type_create_f90_integer is a predefined one, also for accumulates.
// case: a sum of a datatype of MPI_Type_create_f90_integer
#include "case.h"

int main() {
    begin();
    alignas(64) int memory[2] = {rank, rank};
    int seen = -1;
    const int mine = 5;
    MPI_Datatype type;
    MPI_Type_create_f90_integer(9, &type);
    MPI_Win win = create(memory, sizeof memory);
    MPI_Win_fence(0, win);
    SUCCEED(MPI_Accumulate(&mine, 1, type, next, 0, 1, type, MPI_SUM, win));
    SUCCEED(MPI_Fetch_and_op(&mine, &seen, type, next, 4, MPI_SUM, win));
    MPI_Win_fence(0, win);
    expect(memory[0] == rank + 5 && memory[1] == rank + 5 && seen == next, "the sum is another");
    MPI_Win_free(&win);
    return end();
}
