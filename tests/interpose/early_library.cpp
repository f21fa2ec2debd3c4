// A library that uses windows in its constructors and destructors. The loader calls them before those of a preloaded
// library, and after. TEST_STARTS and TEST_ENDS say where the program calls MPI_Init and MPI_Finalize: "early" for
// here.
#include "early_library.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plain_checks.h"

namespace {

using osct::expect;

int rank = 0;
int size = 1;
void* piece = nullptr;
long own[4];
MPI_Win allocated = MPI_WIN_NULL;
MPI_Win created = MPI_WIN_NULL;
long* memory = nullptr;

void put_to_the_right(MPI_Win win, const long* mine, long value, const char* what) {
    const long put = value + rank;
    MPI_Win_fence(0, win);
    MPI_Put(&put, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
    MPI_Win_fence(0, win);
    expect(mine[0] == value + (rank + size - 1) % size, what);
}

void draw_tickets(MPI_Win win, const char* what) {
    const long one = 1;
    long before = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 1, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    expect(before >= 0, what);
}

bool is_early(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && std::strcmp(value, "early") == 0;
}

}  // namespace

void early_begin() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Alloc_mem(4096, MPI_INFO_NULL, static_cast<void*>(&piece));
    std::memset(piece, 7, 4096);
    MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&memory),
                     &allocated);
    std::memset(memory, 0, 4 * sizeof(long));
    MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    put_to_the_right(allocated, memory, 10, "a put before main");
    put_to_the_right(created, own, 20, "a put into own memory before main");
    draw_tickets(allocated, "a lock before main");
}

void early_main() {
    put_to_the_right(allocated, memory, 30, "a put in main");
    draw_tickets(created, "a lock in main");
}

// A window that is freed at once, one that main has used, and one that is left.
int early_end() {
    MPI_Win late = MPI_WIN_NULL;
    MPI_Win left = MPI_WIN_NULL;
    long* here = nullptr;
    put_to_the_right(allocated, memory, 40, "a put after main");
    put_to_the_right(created, own, 50, "a put into own memory after main");
    if (rank != 0) draw_tickets(allocated, "a lock after main, while the target waits in the host");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&here), &late);
    put_to_the_right(late, here, 60, "a window of a destructor");
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &left);
    MPI_Win_free(&late);
    MPI_Win_free(&allocated);
    MPI_Win_free(&created);
    expect(MPI_Free_mem(piece) == MPI_SUCCESS, "MPI_Free_mem");
    int all = 0;
    MPI_Allreduce(&osct::g_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) std::printf("all right\n");
    std::fflush(stdout);
    MPI_Finalize();
    return all;
}

namespace {

// A global object, as C++ wrappers of MPI have.
struct Environment {
    Environment() {
        if (is_early("TEST_STARTS")) early_begin();
    }
    ~Environment() {
        if (is_early("TEST_ENDS") && early_end() != 0) _Exit(1);
    }
};
Environment environment;

// What C has, with the earliest priority that programs may take: before objects and behind them.
__attribute__((constructor(101))) void construct() {
    if (is_early("TEST_STARTS_FIRST")) early_begin();
}

__attribute__((destructor(101))) void destruct() {
    if (is_early("TEST_ENDS_LAST") && early_end() != 0) _Exit(1);
}

}  // namespace
