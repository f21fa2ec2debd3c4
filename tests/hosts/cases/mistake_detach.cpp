// MPI 4.1, 12.2.4: MPI_Win_detach takes what is attached; anything else is an error.
// case: mistake: memory that is detached twice is an error
#include "case.h"

int main() {
    begin();
    static int memory[32];
    MPI_Win win = create_dynamic();
    SUCCEED(MPI_Win_attach(win, memory, sizeof memory));
    SUCCEED(MPI_Win_detach(win, memory));
    expect(MPI_Win_detach(win, memory) != MPI_SUCCESS, "the second detach succeeds");
    MPI_Win_free(&win);
    return end();
}
