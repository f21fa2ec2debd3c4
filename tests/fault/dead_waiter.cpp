// Rank 1 is killed while it waits in the queue of a lock that rank 0 holds, with others behind it. After rank 0's
// release they must acquire the lock, or get an error, within seconds. An argument names the kind of lock that rank 1
// requested.
#include <cstring>

#include "survivors.h"

namespace {

using namespace fault;

MPI_Win g_win = MPI_WIN_NULL;
long* g_base = nullptr;
long g_added = 0;  // by this process, under the lock

// Flags in the memory of rank 0: how many have come to the point of asking for the lock.
void announce() {
    const long one = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, g_win);
    MPI_Accumulate(&one, 1, MPI_LONG, 2, 1, 1, MPI_LONG, MPI_SUM, g_win);
    MPI_Win_unlock(2, g_win);
}

void await_announced(long wanted) {
    long seen = 0, nothing = 0;
    while (seen < wanted) {
        MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, g_win);
        MPI_Get_accumulate(&nothing, 0, MPI_LONG, &seen, 1, MPI_LONG, 2, 1, 1, MPI_LONG, MPI_NO_OP, g_win);
        MPI_Win_unlock(2, g_win);
        sleep_for(0.01);
    }
    sleep_for(0.2);  // from the announcement to the place in the queue
}

// Acquires the lock of rank 0 and adds under it. If rank 0 is on another node, the lock call only sends a request, and
// the flush reports an error.
bool add_under_lock() {
    const auto reports_death = [](const char* what, int error) {
        check(error == MPI_SUCCESS || error == MPI_ERR_OTHER, what, error, MPI_ERR_OTHER);
        return error != MPI_SUCCESS;
    };
    if (reports_death("lock", timed("lock", [] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, g_win); })))
        return false;
    long value = -1;
    bool refused =
        reports_death("get", timed("get", [&] { return MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, g_win); }));
    refused = reports_death("flush", timed("flush", [] { return MPI_Win_flush(0, g_win); })) || refused;
    if (!refused) check(value >= 0, "what was read under the lock", value, 0);
    ++value;
    const long own = g_added + 1;
    MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, g_win);
    MPI_Put(&own, 1, MPI_LONG, 0, g_rank, 1, MPI_LONG, g_win);
    const int error = timed("unlock", [] { return MPI_Win_unlock(0, g_win); });
    if (!refused) check_eq(error, MPI_SUCCESS, "unlock");
    if (!refused) ++g_added;
    return !refused;
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (g_size < 4 || argc < 2) return 1;
    const int type = std::strcmp(argv[1], "shared") == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
    g_scenario = argv[1];
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &g_base, &g_win);
    MPI_Win_set_errhandler(g_win, MPI_ERRORS_RETURN);
    std::memset(g_base, 0, 64);
    const std::vector<int> all = pids();
    if (g_rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, g_win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == kVictim) {
        announce();
        MPI_Win_lock(type, 0, 0, g_win);
        MPI_Win_flush(0, g_win);
        ::pause();
    }
    if (g_rank == 0) {
        await_announced(3);
        ::kill(all[kVictim], SIGKILL);
        sleep_for(0.2);
        must_work("unlock", [] { return MPI_Win_unlock(0, g_win); });
        meet_survivors("served");
        // Refused additions had no effect, and no successful one is lost.
        long added = 0;
        for (int rank = 2; rank < g_size; ++rank)
            added += g_base[rank];
        check_eq(g_base[0], added, "additions under the lock");
    } else {
        // The ranks queue one after the other, so that the dead process is in front of both.
        await_announced(g_rank - 1);
        announce();
        const bool locked = add_under_lock();
        std::printf("rank %d was %s\n", g_rank, locked ? "served" : "refused");
        if (locked) add_under_lock();
        meet_survivors("served");
    }
    leave();
}
