// MPI 4.1, 6.9.2 and 12.3.4: accumulates take every predefined datatype, MPI_REAL16 where the library has it.
// case: a sum of MPI_REAL16
#include "case.h"

int main() {
    begin();
    if (MPI_REAL16 == MPI_DATATYPE_NULL) return end();
    alignas(64) __float128 memory[2] = {__float128(rank), 0};
    const __float128 third = __float128(1) / 3;
    MPI_Win win = create(memory, sizeof memory);
    MPI_Win_fence(0, win);
    SUCCEED(MPI_Accumulate(&third, 1, MPI_REAL16, next, 0, 1, MPI_REAL16, MPI_SUM, win));
    MPI_Win_fence(0, win);
    expect(memory[0] == rank + third, "the sum is another");
    MPI_Win_free(&win);
    return end();
}
