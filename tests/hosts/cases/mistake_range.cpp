// MPI 4.1, 12.6: MPI_ERR_RMA_RANGE is the class for target memory that is not in the window.
// case: mistake: a put behind the window's end is MPI_ERR_RMA_RANGE
#include "case.h"

int main() {
    begin();
    alignas(64) static int memory[32];
    MPI_Win win = create(memory, 64);
    const int mine[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    MPI_Win_fence(0, win);
    const int error = MPI_Put(mine, 8, MPI_INT, next, 48, 8, MPI_INT, win);
    MPI_Win_fence(0, win);
    expect(memory[16] == 0 && memory[19] == 0, "the put wrote behind the window");
    expect(class_of(error) == MPI_ERR_RMA_RANGE, "the put has another class, or none");
    MPI_Win_free(&win);
    return end();
}
