/* sessions.c: windows of a program that never calls MPI_Init: on a communicator of a session, so that nothing may
 * depend on MPI_COMM_WORLD. One session with two or more processes: the host crashes in the second MPI_Session_init of
 * a process, and in any window or communicator made from a session's communicator of a single process. */
#include <mpi.h>
#include <osc/osc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak osc_served
#pragma weak osc_forwarded

static int failures;

static void expect(int fine, const char* what) {
    if (fine) return;
    ++failures;
    printf("not true: %s\n", what);
}

/* The session from its start to its end; the number of failures on all ranks. */
static int run(int* rank) {
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Win win = MPI_WIN_NULL;
    long* memory = NULL;
    int size = 0, all = 0;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "libosc.test.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, rank);
    MPI_Comm_size(comm, &size);
    MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, comm, &memory, &win);
    memset(memory, 0, 4 * sizeof(long));
    MPI_Win_fence(0, win);
    const long value = 40 + *rank, one = 1;
    const int next = (*rank + 1) % size, prev = (*rank + size - 1) % size;
    MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    expect(memory[0] == 40 + prev, "a put under fence arrives");
    for (int i = 0; i < 100; ++i) {
        long before = -1;
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 1, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        expect(before >= i, "tickets grow");
    }
    MPI_Barrier(comm);
    if (*rank == 0) expect(memory[1] == 100L * size, "every ticket was drawn");
    MPI_Win_free(&win);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return all;
}

int main(void) {
    int rank = 0;
    int all = run(&rank);
    if (osc_served != NULL && getenv("OSC_DISABLE") == NULL &&
        (osc_served("MPI_Win_allocate") != 1 || osc_served("MPI_Put") != 1 || osc_forwarded("MPI_Win_allocate") != 0)) {
        printf("libosc did not serve the windows\n");
        all = 1;
    }
    if (rank == 0 && all == 0) printf("all right\n");
    return all == 0 ? 0 : 1;
}
