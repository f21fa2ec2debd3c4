// MPI 4.1, 12.2.1: a window is made over an intracommunicator; another one is MPI_ERR_COMM.
// case: mistake: a window over an intercommunicator is MPI_ERR_COMM
#include "case.h"

int main() {
    begin();
    static char memory[64];
    MPI_Comm half, inter;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, next, 0, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    expect(class_of(MPI_Win_create(memory, 64, 1, MPI_INFO_NULL, inter, &win)) == MPI_ERR_COMM,
           "the window has another class, or none");
    MPI_Comm_free(&inter), MPI_Comm_free(&half);
    return end();
}
