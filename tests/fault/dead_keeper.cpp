// Processes that keep the addresses of others die before a process looks these up. Of four processes on three nodes
// rank 0 and rank 1 share one. Rank 3 asks rank 0 for the address of rank 1, and if that has died, rank 2.
//
//   fault_dead_keeper one|both
#include <cstring>

#include "survivors.h"

int main(int argc, char** argv) {
    using namespace fault;
    begin(argc, argv);
    if (g_size != 4 || argc != 2) return 1;
    g_scenario = argv[1];
    const bool both = std::strcmp(argv[1], "both") == 0;
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    *base = 100 + g_rank;
    MPI_Barrier(MPI_COMM_WORLD);
    for (const int keeper : both ? std::vector<int>{0, 2} : std::vector<int>{0}) {
        if (g_rank == keeper) {
            if (keeper != 0) meet_survivors("end", false);  // one death is expected there
            meet_survivors("death", false);
            ::kill(::getpid(), SIGKILL);
        }
        await_process("death", keeper);
    }
    sleep_for(0.5);
    constexpr int kTarget = 1;  // it uses no other process: that would bring its address
    long got = -1;
    const auto read = [&] {
        int error = MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, win);
        if (error != MPI_SUCCESS) return error;
        error = MPI_Get(&got, 1, MPI_LONG, kTarget, 0, 1, MPI_LONG, win);
        const int unlocked = MPI_Win_unlock(kTarget, win);
        return error != MPI_SUCCESS ? error : unlocked;
    };
    if (both && g_rank == 3) {
        must_report("read", read);
        must_report("a second read", read);
    } else {
        must_work("read", read);
        check_eq(got, 100 + kTarget, "what the target's memory has");
    }
    leave();
}
