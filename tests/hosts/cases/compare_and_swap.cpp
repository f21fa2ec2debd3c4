// MPI 4.1, 12.3.4: MPI_Compare_and_swap works on any window.
// case: MPI_Compare_and_swap in an allocated window
#include "case.h"

int main() {
    begin();
    long* memory = nullptr;
    MPI_Win win = allocate(64, &memory);
    for (int i = 0; i < 8; ++i)
        memory[i] = i;
    const long expected[2] = {4, 9}, wanted = 100 + rank;
    long seen[2] = {-1, -1};
    MPI_Win_fence(0, win);
    for (int i : {0, 1})
        SUCCEED(MPI_Compare_and_swap(&wanted, &expected[i], &seen[i], MPI_LONG, next, 8 * (4 + i), win));
    MPI_Win_fence(0, win);
    expect(seen[0] == 4 && seen[1] == 5, "other values were there");
    expect(memory[4] == 100 + prev && memory[5] == 5, "another element is swapped");
    MPI_Win_free(&win);
    return end();
}
