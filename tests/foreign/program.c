/* program.c: an MPI program that uses every kind of one-sided call and checks what it gets. It is built for MPI
 * libraries of other ABIs than MPICH's, and libosc preloaded into it must change nothing. */
#ifdef TEST_STANDARD_ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCells = 16 };

static int failures = 0;

static void expect(int fine, const char* what) {
    if (fine) return;
    ++failures;
    fprintf(stderr, "not true: %s\n", what);
}

/* Every operation, under MPI_Win_fence. */
static void fence(MPI_Win win, long* memory, int rank, int next, int prev) {
    const long mine = 100 + rank;
    const long one = 1;
    const long zero = 0;
    long results[3] = {-1, -1, -1};
    memset(memory, 0, kCells * sizeof *memory);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(&mine, 1, MPI_LONG, next, 0, 1, MPI_LONG, win);
    MPI_Accumulate(&mine, 1, MPI_LONG, next, 1, 1, MPI_LONG, MPI_SUM, win);
    MPI_Get_accumulate(&mine, 1, MPI_LONG, &results[0], 1, MPI_LONG, next, 2, 1, MPI_LONG, MPI_SUM, win);
    MPI_Fetch_and_op(&one, &results[1], MPI_LONG, next, 3, MPI_SUM, win);
    MPI_Compare_and_swap(&mine, &zero, &results[2], MPI_LONG, next, 4, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    expect(memory[0] == 100 + prev && memory[1] == 100 + prev, "put and accumulate arrive");
    expect(memory[2] == 100 + prev && results[0] == 0, "get_accumulate");
    expect(memory[3] == 1 && results[1] == 0, "fetch_and_op");
    expect(memory[4] == 100 + prev && results[2] == 0, "compare_and_swap");
}

/* Passive target: locks, requests with the longest lists of arguments, flushes. */
static void locks(MPI_Win win, long* memory, int rank, int next, int prev) {
    const long mine = 200 + rank;
    long result = -1;
    long got = -1;
    int flag = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
    MPI_Put(&mine, 1, MPI_LONG, next, 8, 1, MPI_LONG, win);
    MPI_Win_flush(next, win);
    MPI_Get(&got, 1, MPI_LONG, next, 8, 1, MPI_LONG, win);
    MPI_Win_unlock(next, win);
    expect(got == mine, "a get after a flushed put");
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Rget_accumulate(&mine, 1, MPI_LONG, &result, 1, MPI_LONG, next, 8, 1, MPI_LONG, MPI_REPLACE, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(request == MPI_REQUEST_NULL, "MPI_Wait sets MPI_REQUEST_NULL");
    MPI_Rget(&got, 1, MPI_LONG, next, 8, 1, MPI_LONG, win, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    expect(request == MPI_REQUEST_NULL && got == mine, "rget and MPI_Test");
    MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(result == mine, "rget_accumulate fetches");
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    expect(memory[8] == 200 + prev, "rget_accumulate replaces");
    MPI_Win_unlock(rank, win);
}

/* Large counts, where the program finds them: by weak names, which libosc has even where the library has not. */
#ifndef TEST_STANDARD_ABI
#pragma weak MPI_Win_allocate_c
#pragma weak MPI_Put_c
#pragma weak MPI_Win_shared_query_c
int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win);
int MPI_Put_c(const void* origin, MPI_Count count, MPI_Datatype type, int target, MPI_Aint at, MPI_Count target_count,
              MPI_Datatype target_type, MPI_Win win);
int MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* unit, void* base);

static void large_counts(int rank, int next, int prev) {
    const long mine[2] = {500 + rank, 600 + rank};
    long* memory = NULL;
    long* queried = NULL;
    MPI_Aint size = -1, unit = -1;
    MPI_Win win = MPI_WIN_NULL;
    if (MPI_Win_allocate_c == NULL || MPI_Put_c == NULL || MPI_Win_shared_query_c == NULL) return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_allocate_c(kCells * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put_c(mine, 2, MPI_LONG, next, 3, 2, MPI_LONG, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    expect(memory[3] == 500 + prev && memory[4] == 600 + prev, "MPI_Put_c");
    MPI_Win_free(&win);
    MPI_Win_allocate_shared(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_shared_query_c(win, rank, &size, &unit, &queried);
    expect(size == sizeof(long) && unit == sizeof(long) && queried == memory, "MPI_Win_shared_query_c");
    MPI_Win_free(&win);
}
#else
static void large_counts(int rank, int next, int prev) {
    (void)rank, (void)next, (void)prev;
}
#endif

/* MPI_Wait and MPI_Test of persistent and null requests, and the status of a message. */
static void messages(int rank, int next, int prev) {
    const long mine = 400 + rank;
    long got = -1;
    int flag = 0, count = 0;
    MPI_Status status;
    MPI_Request receive, send;
    MPI_Recv_init(&got, 1, MPI_LONG, prev, 3, MPI_COMM_WORLD, &receive);
    const MPI_Request persistent = receive;
    MPI_Start(&receive);
    MPI_Isend(&mine, 1, MPI_LONG, next, 3, MPI_COMM_WORLD, &send);
    MPI_Wait(&receive, &status);
    MPI_Get_count(&status, MPI_LONG, &count);
    expect(got == 400 + prev && status.MPI_SOURCE == prev && status.MPI_TAG == 3 && count == 1, "a message's status");
    expect(receive == persistent, "a persistent request stays");
    while (!flag)
        MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&send, &status);
    expect(send == MPI_REQUEST_NULL && status.MPI_SOURCE == MPI_ANY_SOURCE, "a null request's status is empty");
    MPI_Request_free(&receive);
}

static void post_start(MPI_Win win, long* memory, int rank, int next, int prev) {
    const long mine = 300 + rank;
    MPI_Group all, to, from;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &next, &to);
    MPI_Group_incl(all, 1, &prev, &from);
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(&mine, 1, MPI_LONG, next, 9, 1, MPI_LONG, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    expect(memory[9] == 300 + prev, "a put under post and start");
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

int main(int argc, char** argv) {
    int rank = 0, size = 1, all = 0, flag = 0;
    long* memory = NULL;
    void* base = NULL;
    void* allocated = NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int next = (rank + 1) % size;
    const int prev = (rank + size - 1) % size;
    MPI_Win_allocate(kCells * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    fence(win, memory, rank, next, prev);
    locks(win, memory, rank, next, prev);
    post_start(win, memory, rank, next, prev);
    messages(rank, next, prev);
    large_counts(rank, next, prev);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    expect(flag && base == memory, "MPI_WIN_BASE");
    MPI_Win_free(&win);
    expect(win == MPI_WIN_NULL, "MPI_Win_free sets MPI_WIN_NULL");
    MPI_Alloc_mem(kCells * sizeof(long), MPI_INFO_NULL, &allocated);
    MPI_Win_create(allocated, kCells * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    fence(win, allocated, rank, next, prev);
    MPI_Win_free(&win);
    MPI_Free_mem(allocated);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0) printf(all == 0 ? "all right\n" : "%d failures\n", all);
    return all == 0 ? 0 : 1;
}
