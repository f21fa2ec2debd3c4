// What the programs of this folder share. Each shows one thing that the standard requires: it prints `right` and exits
// with 0 where the MPI library does it, else a line that starts with `wrong` or `rejected`, and exits with 1.
#pragma once
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

inline int rank, size, next, prev;
inline int wrong = 0;

// The first condition that does not hold on a process is printed; the job goes on.
inline void expect(bool holds, const char* otherwise) {
    if (!holds && wrong++ == 0) std::printf("wrong: %s\n", otherwise), std::fflush(stdout);
}

// A call that must succeed; an error ends the job.
inline void succeed(int error, const char* call) {
    if (error == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(error, text, &length);
    std::printf("rejected: %.40s: %s\n", call, text);
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define SUCCEED(call) succeed((call), #call)

inline int class_of(int error) {
    int result = MPI_SUCCESS;
    MPI_Error_class(error, &result);
    return result;
}

inline void begin(int level = MPI_THREAD_SINGLE) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, level, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    prev = (rank + size - 1) % size;
}

inline int end() {
    int anywhere = 0;
    MPI_Allreduce(&wrong, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0 && !anywhere) std::puts("right");
    return anywhere ? 1 : 0;
}

// A window over memory of MPI or of the program, whose errors are returned. Its unit is one byte.
inline MPI_Win allocate(MPI_Aint bytes, void* base_address, MPI_Info info = MPI_INFO_NULL) {
    MPI_Win win;
    SUCCEED(MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, base_address, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return win;
}

inline MPI_Win create(void* base, MPI_Aint bytes, MPI_Comm comm = MPI_COMM_WORLD) {
    MPI_Win win;
    SUCCEED(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, comm, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return win;
}

// A dynamic window, and the address of `mine` on process `target`.
inline MPI_Win create_dynamic() {
    MPI_Win win;
    SUCCEED(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return win;
}

inline MPI_Aint address_at(int target, const void* mine) {
    MPI_Aint addresses[64], address = 0;
    MPI_Get_address(mine, &address);
    MPI_Allgather(&address, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
    return addresses[target];
}

// The process does nothing but compute.
inline void compute(double seconds) {
    for (const double begin = MPI_Wtime(); MPI_Wtime() - begin < seconds;)
        continue;
}
