// The program whose instructions are counted: each counted_* function makes exactly `n` calls of one kind to rank 1
// and nothing else, so that callgrind can collect inside that function alone and a difference of two runs leaves the
// calls. Usage: call_counts KIND N single|multiple. Rank 0 counts, the others are the target.
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
COUNTED void counted_lock_unlock(MPI_Win win, int64_t* value, int n);

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

void counted_lock_unlock(MPI_Win win, int64_t* value, int n) {
    (void)value;
    for (int i = 0; i < n; ++i) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, win);
        MPI_Win_unlock(kTarget, win);
    }
}

static const struct {
    const char* name;
    void (*run)(MPI_Win, int64_t*, int);
    int own_epoch;
} kinds[] = {
    {"put", counted_put, 0},
    {"put_flush", counted_put_flush, 0},
    {"fetch_and_op", counted_fetch_and_op, 0},
    {"lock_unlock", counted_lock_unlock, 1},
};

int main(int argc, char** argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: call_counts KIND N single|multiple\n");
        return 1;
    }
    const int want = strcmp(argv[3], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    const int n = atoi(argv[2]);
    int level = 0;
    MPI_Init_thread(NULL, NULL, want, &level);
    if (level < want) {
        fprintf(stderr, "call_counts: the MPI does not give this thread level\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int64_t* memory = NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        int64_t value = 1;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
            if (strcmp(kinds[k].name, argv[1]) != 0) continue;
            if (!kinds[k].own_epoch) MPI_Win_lock_all(0, win);
            kinds[k].run(win, &value, n);
            if (!kinds[k].own_epoch) MPI_Win_unlock_all(win);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
