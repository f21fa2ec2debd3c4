// MPI 4.1, 12.5.2: groups of MPI_Win_post and MPI_Win_start may differ from epoch to epoch, and may be empty.
// case: post and start with groups that differ between epochs
#include <vector>

#include "case.h"

static MPI_Group group_of(const std::vector<int>& ranks) {
    MPI_Group all, some;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, (int)ranks.size(), ranks.data(), &some);
    MPI_Group_free(&all);
    return some;
}

int main() {
    begin();
    int *base = nullptr, latest[8] = {};
    MPI_Win win = allocate(64, &base);
    for (int i = 0; i < size; ++i)
        base[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned random = 20;
    for (int turn = 1; turn <= 300; ++turn) {
        std::vector<int> origins, targets;
        for (int origin = 0; origin < size; ++origin) {
            for (int target = 0; target < size; ++target) {
                random = random * 1103515245 + 12345;
                if ((random >> 16) % 3 != 0) continue;
                if (origin == rank) targets.push_back(target);
                if (target == rank) origins.push_back(origin);
            }
        }
        MPI_Group posted = group_of(origins), started = group_of(targets);
        SUCCEED(MPI_Win_post(posted, 0, win));
        SUCCEED(MPI_Win_start(started, 0, win));
        for (int target : targets)
            SUCCEED(MPI_Put(&turn, 1, MPI_INT, target, 4 * rank, 1, MPI_INT, win));
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        for (int origin : origins)
            latest[origin] = turn;
        for (int i = 0; i < size; ++i)
            expect(base[i] == latest[i], "an epoch's put is not there");
        MPI_Group_free(&posted), MPI_Group_free(&started);
    }
    MPI_Win_free(&win);
    return end();
}
