// MPI 4.1, 6.9.4 and 12.3.4: MPI_Fetch_and_op takes pairs with MPI_MAXLOC, and gives both members of the old one.
// case: MPI_Fetch_and_op of MPI_SHORT_INT
#include "case.h"

int main() {
    begin();
    struct Pair {
        short value;
        int at;
    };
    alignas(64) Pair memory[2] = {{5, 3}, {5, 3}};
    Pair seen = {};
    const Pair mine = {9, rank};
    MPI_Win win = create(memory, sizeof memory);
    MPI_Win_fence(0, win);
    SUCCEED(MPI_Fetch_and_op(&mine, &seen, MPI_SHORT_INT, next, sizeof mine, MPI_MAXLOC, win));
    MPI_Win_fence(0, win);
    expect(memory[1].value == 9 && memory[1].at == prev, "the maximum is another");
    expect(seen.value == 5 && seen.at == 3, "the old pair is another");
    MPI_Win_free(&win);
    return end();
}
