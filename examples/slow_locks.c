/* A slow program, and the same one with what OSC_STATS advises: rank 0 adds up a histogram in the memory of rank 1.
 *
 *   slow_locks slow N    a lock around each element, in a window over malloc memory
 *   slow_locks fast N    one lock_all with flushes, in a window of MPI_Win_allocate
 *
 * Both print the time of an element and check the sum. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBins = 1024, kFlushEvery = 64 };

static void lock_each(MPI_Win win, int rank, int peer, int elements) {
    const long one = 1;
    for (int i = 0; i < elements && rank == 0; ++i) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, win);
        MPI_Accumulate(&one, 1, MPI_LONG, peer, i % kBins, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_unlock(peer, win);
    }
}

static void lock_once(MPI_Win win, int rank, int peer, int elements) {
    const long one = 1;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < elements && rank == 0; ++i) {
        MPI_Accumulate(&one, 1, MPI_LONG, peer, i % kBins, 1, MPI_LONG, MPI_SUM, win);
        if (i % kFlushEvery == kFlushEvery - 1) MPI_Win_flush(peer, win);
    }
    MPI_Win_unlock_all(win);
}

int main(int argc, char** argv) {
    const int is_slow = argc > 1 && strcmp(argv[1], "slow") == 0;
    const int elements = argc > 2 ? atoi(argv[2]) : 100000;
    const MPI_Aint bytes = kBins * sizeof(long);
    int rank, processes;
    long *bins = NULL, sum = 0, total = 0;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (is_slow) {
        bins = malloc((size_t)bytes);
        MPI_Win_create(bins, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else {
        MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &bins, &win);
    }
    MPI_Win_set_name(win, "bins");
    memset(bins, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    (is_slow ? lock_each : lock_once)(win, rank, processes > 1 ? 1 : 0, elements);
    const double end = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < kBins; ++i)
        sum += bins[i];
    MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %.0f ns for an element, sum %s\n", is_slow ? "slow" : "fast", (end - begin) / elements * 1e9,
               total == elements ? "right" : "WRONG");
    MPI_Win_free(&win);
    if (is_slow) free(bins);
    MPI_Finalize();
    return total == elements || rank != 0 ? 0 : 1;
}
