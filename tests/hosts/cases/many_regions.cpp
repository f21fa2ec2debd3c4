// MPI 4.1, 12.2.4: any number of regions may be attached to a dynamic window, as memory permits.
// case: 3,000 regions attached to a dynamic window
#include <vector>

#include "case.h"

int main() {
    begin();
    constexpr int count = 3000;
    MPI_Win win = create_dynamic();
    std::vector<long*> blocks(count);
    std::vector<MPI_Aint> mine(count), there(count);
    for (int i = 0; i < count; ++i) {
        blocks[i] = (long*)std::calloc(8, sizeof(long));
        SUCCEED(MPI_Win_attach(win, blocks[i], 8 * sizeof(long)));
        MPI_Get_address(blocks[i], &mine[i]);
    }
    MPI_Sendrecv(mine.data(), count, MPI_AINT, prev, 0, there.data(), count, MPI_AINT, next, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, win);
    for (long i = 0; i < count; ++i) {
        SUCCEED(MPI_Put(&i, 1, MPI_LONG, next, there[i], 1, MPI_LONG, win));
        MPI_Win_flush(next, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) {
        expect(*blocks[i] == i, "a region has another's value");
        SUCCEED(MPI_Win_detach(win, blocks[i]));
    }
    MPI_Win_free(&win);
    return end();
}
