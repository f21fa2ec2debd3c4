// An error under MPI_ERRORS_ARE_FATAL, named by the argument: the job ends, and what it prints names the call that
// failed, not the host's function by which libosc could have called the handler.
#include <mpi.h>

#include <cstring>

int main(int argc, char** argv) {
    const char* const which = argc > 1 ? argv[1] : "";
    long* base = nullptr;
    const long value = 1;
    long result = 0;
    int memory = 0;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Init(&argc, &argv);
    if (std::strcmp(which, "Win_create") == 0) MPI_Win_create(&memory, -4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
    if (std::strcmp(which, "Win_unlock") == 0) MPI_Win_unlock(0, win);
    MPI_Win_fence(0, win);
    if (std::strcmp(which, "Put") == 0) MPI_Put(&value, 1, MPI_LONG, 0, 8, 1, MPI_LONG, win);
    if (std::strcmp(which, "Fetch_and_op") == 0) MPI_Fetch_and_op(&value, &result, MPI_LONG, 7, 0, MPI_SUM, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    if (std::strcmp(which, "Free_mem") == 0) MPI_Free_mem(&memory);
    MPI_Finalize();
    return 0;
}
