// Windows on the whole job and on halves of it, for tests of what libosc prints.
#include <mpi.h>

namespace {

void make_and_free(MPI_Comm comm) {
    int* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, comm, static_cast<void*>(&base), &win);
    MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 2 * rank < size ? 0 : 1, 0, &half);
    for (int i = 0; i < 2; ++i) {
        make_and_free(MPI_COMM_WORLD);
        make_and_free(half);
    }
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
