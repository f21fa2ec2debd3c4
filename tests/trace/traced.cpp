// Puts a number of times to the next rank in a lock_all epoch, and ends as its argument says: "ends" with MPI_Finalize,
// "killed" by SIGKILL of every rank, "exits" without MPI_Finalize; each rank is behind a barrier then. "moves": each
// rank changes to a folder of its own first, which is gone at once; "gone": rank 0 removes its part of the timeline.
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string_view how = argv[1];
    const long puts = std::atol(argv[2]);
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long* memory = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    if (how == "moves") {
        const std::string folder = "/tmp/osc_traced_" + std::to_string(::getpid());
        if (::mkdir(folder.c_str(), 0700) != 0 || ::chdir(folder.c_str()) != 0 || ::rmdir(folder.c_str()) != 0)
            return 3;
    }
    if (how == "gone" && rank == 0 && ::unlink("timeline.json.rank-0") != 0) return 4;
    MPI_Win_lock_all(0, win);
    const long value = rank;
    for (long i = 0; i < puts; ++i)
        MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (how == "killed") ::kill(::getpid(), SIGKILL);
    if (how == "exits") ::_exit(0);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    if (rank == 0) std::puts("passed");
    return 0;
}
