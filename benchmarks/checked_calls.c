/* What single calls, and loads and stores, take of rank 0's processor time: with the usage checker (OSC_CHECK) or
 * without, compiled for ThreadSanitizer or not. docs/CHECKING.md has the commands. Two processes. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { kCount = 2000, kTries = 5, kElements = 1000 };

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static double* base;
static MPI_Win win;

static void load_and_store(void) {
    for (int i = 1; i < kElements; ++i)
        base[i] += base[i - 1];
}

static void put_and_flush(void) {
    const double value = 1;
    MPI_Put(&value, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win);
    MPI_Win_flush(1, win);
}

static void lock_put_unlock(void) {
    const double value = 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Put(&value, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win);
    MPI_Win_unlock(1, win);
}

static void send_and_receive(void) {
    int sent = 0;
    int received = 0;
    MPI_Sendrecv(&sent, 1, MPI_INT, 0, 0, &received, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void measure(const char* name, void (*what)(void)) {
    double best = 1e30;
    for (int try = 0; try < kTries; ++try) {
        const double start = now_us();
        for (int i = 0; i < kCount; ++i)
            what();
        const double spent = (now_us() - start) / kCount;
        if (spent < best) best = spent;
    }
    printf("%-24s %8.3f us\n", name, best);
}

int main(int argc, char** argv) {
    int rank = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(kElements * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    for (int i = 0; i < kElements; ++i)
        base[i] = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        measure("1,000 loads and stores", load_and_store);
        MPI_Win_lock_all(0, win);
        measure("put and flush", put_and_flush);
        MPI_Win_unlock_all(win);
        measure("lock, put, unlock", lock_put_unlock);
        measure("sendrecv", send_and_receive);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
