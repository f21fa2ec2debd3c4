// MPI 4.1, 7.7.2: copy callbacks are for duplicated communicators; making a window duplicates none of the program's.
// case: attributes of the communicator that a window is made over
#include "case.h"

static int copies, deletions;
static int on_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
    return ++copies, *flag = 1, MPI_SUCCESS;
}
static int on_delete(MPI_Comm, int, void*, void*) {
    return ++deletions, MPI_SUCCESS;
}

int main() {
    begin();
    int key = MPI_KEYVAL_INVALID;
    alignas(64) char memory[64];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(on_copy, on_delete, &key, nullptr);
    MPI_Comm_set_attr(comm, key, memory);
    MPI_Win win = create(memory, sizeof memory, comm);
    MPI_Win_free(&win);
    char* base = nullptr;
    SUCCEED(MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &base, &win));
    MPI_Win_free(&win);
    expect(copies == 0 && deletions == 0, "the program's callbacks are called");
    MPI_Comm_free(&comm);
    return end();
}
