// MPI 4.1, 12.2.1: a window may lie over any memory; a displacement counts from its base.
// case: a window over a part of an array, whose base is no multiple of 16
#include "case.h"

alignas(64) static char memory[256];

int main() {
    begin();
    MPI_Win win = create(memory + 8, 64);
    MPI_Win_fence(0, win);
    const double mine = 1.5 + rank;
    SUCCEED(MPI_Put(&mine, 1, MPI_DOUBLE, next, 0, 1, MPI_DOUBLE, win));
    MPI_Win_fence(0, win);
    double *before = (double*)memory, *base = before + 1;
    expect(*before == 0, "the put wrote before the window");
    expect(*base == 1.5 + prev, "the put is not at the window's base");
    MPI_Win_free(&win);
    return end();
}
