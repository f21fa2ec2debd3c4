// The program whose instructions are counted: each counted_* function makes exactly `n` calls of one kind to rank 1
// and nothing else, so that callgrind can collect inside that function alone and a difference of two runs leaves the
// calls. Each is run three times: N calls that warm up, N and 2N. Rank 0 counts, the others are the target.
//   call_counts N single|multiple KIND...
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Loops must not be merged into main or unrolled differently per N.
#define COUNTED __attribute__((noinline, noclone, used))

enum { kTarget = 1 };

COUNTED void counted_put(MPI_Win win, int64_t* value, int n);
COUNTED void counted_put_flush(MPI_Win win, int64_t* value, int n);
COUNTED void counted_fetch_and_op(MPI_Win win, int64_t* value, int n);
COUNTED void counted_get_accumulate(MPI_Win win, int64_t* value, int n);
COUNTED void counted_rput_wait(MPI_Win win, int64_t* value, int n);
COUNTED void counted_lock_unlock(MPI_Win win, int64_t* value, int n);
COUNTED void counted_put_region(MPI_Win win, int64_t* value, int n);
COUNTED void counted_put_nodes(MPI_Win win, int64_t* value, int n);

// The address of the target's attached memory.
static MPI_Aint region;

void counted_put(MPI_Win win, int64_t* value, int n) {
    for (int i = 0; i < n; ++i)
        MPI_Put(value, 1, MPI_INT64_T, kTarget, 0, 1, MPI_INT64_T, win);
}

void counted_put_flush(MPI_Win win, int64_t* value, int n) {
    for (int i = 0; i < n; ++i) {
        MPI_Put(value, 1, MPI_INT64_T, kTarget, 0, 1, MPI_INT64_T, win);
        MPI_Win_flush(kTarget, win);
    }
}

void counted_fetch_and_op(MPI_Win win, int64_t* value, int n) {
    // Outlives the function: the operations may complete only at the unlock.
    static int64_t before;
    for (int i = 0; i < n; ++i)
        MPI_Fetch_and_op(value, &before, MPI_INT64_T, kTarget, 0, MPI_SUM, win);
}

void counted_get_accumulate(MPI_Win win, int64_t* value, int n) {
    static int64_t before;
    for (int i = 0; i < n; ++i)
        MPI_Get_accumulate(value, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, kTarget, 0, 1, MPI_INT64_T, MPI_SUM, win);
}

void counted_rput_wait(MPI_Win win, int64_t* value, int n) {
    for (int i = 0; i < n; ++i) {
        MPI_Request request;
        MPI_Rput(value, 1, MPI_INT64_T, kTarget, 0, 1, MPI_INT64_T, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

void counted_lock_unlock(MPI_Win win, int64_t* value, int n) {
    (void)value;
    for (int i = 0; i < n; ++i) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, win);
        MPI_Win_unlock(kTarget, win);
    }
}

void counted_put_region(MPI_Win win, int64_t* value, int n) {
    for (int i = 0; i < n; ++i)
        MPI_Put(value, 1, MPI_INT64_T, kTarget, region, 1, MPI_INT64_T, win);
}

// The processes count as two nodes. The places differ, because puts that follow each other become one record.
void counted_put_nodes(MPI_Win win, int64_t* value, int n) {
    for (int i = 0; i < n; ++i)
        MPI_Put(value, 1, MPI_INT64_T, kTarget, i % 2 * 16, 1, MPI_INT64_T, win);
}

enum window_kind { ALLOCATED, DYNAMIC, WINDOWS };

static const struct {
    const char* name;
    void (*run)(MPI_Win, int64_t*, int);
    int own_epoch;
    enum window_kind window;
} kinds[] = {
    {"put", counted_put, 0, ALLOCATED},
    {"put_flush", counted_put_flush, 0, ALLOCATED},
    {"fetch_and_op", counted_fetch_and_op, 0, ALLOCATED},
    {"get_accumulate", counted_get_accumulate, 0, ALLOCATED},
    {"rput_wait", counted_rput_wait, 0, ALLOCATED},
    {"lock_unlock", counted_lock_unlock, 1, ALLOCATED},
    {"put_region", counted_put_region, 0, DYNAMIC},
    {"put_nodes", counted_put_nodes, 0, ALLOCATED},
};

// A dynamic window over memory that is attached at the target.
static void make_dynamic(int rank, MPI_Win* win, int64_t** memory) {
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win);
    MPI_Alloc_mem(64, MPI_INFO_NULL, memory);
    if (rank == kTarget) {
        MPI_Win_attach(*win, *memory, 64);
        MPI_Get_address(*memory, &region);
    }
    MPI_Bcast(&region, 1, MPI_AINT, kTarget, MPI_COMM_WORLD);
}

static void count_one(void (*run)(MPI_Win, int64_t*, int), int own_epoch, MPI_Win win, int n) {
    int64_t value = 1;
    if (!own_epoch) MPI_Win_lock_all(0, win);
    run(win, &value, n);
    if (!own_epoch) MPI_Win_unlock_all(win);
}

int main(int argc, char** argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: call_counts N single|multiple KIND...\n");
        return 1;
    }
    const int n = atoi(argv[1]);
    const int want = strcmp(argv[2], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int level = 0;
    MPI_Init_thread(NULL, NULL, want, &level);
    if (level < want) {
        fprintf(stderr, "call_counts: the MPI does not give this thread level\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int64_t* memory = NULL;
    int64_t* attached = NULL;
    MPI_Win wins[WINDOWS] = {MPI_WIN_NULL, MPI_WIN_NULL};
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &wins[ALLOCATED]);
    int wants_dynamic = 0;
    for (int i = 3; i < argc; ++i)
        wants_dynamic |= strcmp(argv[i], "put_region") == 0;
    if (wants_dynamic) make_dynamic(rank, &wins[DYNAMIC], &attached);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 3; rank == 0 && i < argc; ++i) {
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
            if (strcmp(kinds[k].name, argv[i]) != 0) continue;
            const MPI_Win win = wins[kinds[k].window];
            count_one(kinds[k].run, kinds[k].own_epoch, win, n);
            count_one(kinds[k].run, kinds[k].own_epoch, win, n);
            count_one(kinds[k].run, kinds[k].own_epoch, win, 2 * n);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (wants_dynamic) {
        if (rank == kTarget) MPI_Win_detach(wins[DYNAMIC], attached);
        MPI_Win_free(&wins[DYNAMIC]);
        MPI_Free_mem(attached);
    }
    MPI_Win_free(&wins[ALLOCATED]);
    MPI_Finalize();
    return 0;
}
