// MPI 4.1, 12.4 and 12.7.3: an update that its origin completes shows in the target's memory without its calls.
// case: a target that polls its memory without calls, in a window of MPI_Win_allocate
#include "target_polls.h"

int main() {
    begin();
    int* base = nullptr;
    MPI_Win win = allocate(64, &base);
    return poll_for_update(win, base);
}
