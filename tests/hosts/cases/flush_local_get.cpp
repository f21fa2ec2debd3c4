// MPI 4.1, 12.5.4: MPI_Win_flush_local completes operations at the origin: the data of a get is in its buffer.
// case: the data of gets of 1 MiB behind MPI_Win_flush_local and MPI_Win_flush_local_all
// ranks: 4
#include <vector>

#include "case.h"

int main() {
    begin();
    constexpr int count = 1 << 18;
    int* base = nullptr;
    MPI_Win win = allocate(count * sizeof(int), &base);
    for (int i = 0; i < count; ++i)
        base[i] = rank + i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < 12; ++turn) {
        const int target = turn % size;
        std::vector<int> in(count, -1);
        SUCCEED(MPI_Get(in.data(), count, MPI_INT, target, 0, count, MPI_INT, win));
        turn % 2 ? MPI_Win_flush_local(target, win) : MPI_Win_flush_local_all(win);
        for (int i = 0; i < count; ++i)
            expect(in[i] == target + i, "the data is not there");
        MPI_Win_flush_all(win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return end();
}
