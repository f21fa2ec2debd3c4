// The network between two hosts is cut in the middle of a lock_all epoch: calls that wait for the other host end with
// an error soon after OSC_PEER_TIMEOUT, and so does every later call. The program ends without MPI_Finalize, which
// could not complete.
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "network.h"

namespace {

using Clock = std::chrono::steady_clock;

int failures = 0;

void expect(bool good, const char* what) {
    if (good) return;
    ++failures;
    std::printf("FAILED: %s\n", what);
}

int class_of(int error) {
    int value = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &value);
    return value;
}

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    base[0] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const long value = 7;
    long got = 0;
    MPI_Win_lock_all(0, win);
    MPI_Put(&value, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win);
    expect(MPI_Win_flush(1 - rank, win) == MPI_SUCCESS, "a put before the cut");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) multihost::ask_network("cut h0 h1");
    ::sleep(1);
    const Clock::time_point begin = Clock::now();
    MPI_Get(&got, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win);
    expect(class_of(MPI_Win_flush(1 - rank, win)) == MPI_ERR_OTHER, "a flush behind the cut ends with an error");
    const double waited = seconds_since(begin);
    expect(waited < 30, "within seconds");
    const Clock::time_point again = Clock::now();
    MPI_Put(&value, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win);
    expect(MPI_Win_flush(1 - rank, win) != MPI_SUCCESS, "the next flush fails too");
    expect(seconds_since(again) < 15, "and sooner");
    expect(base[0] == 7, "what came before is there");
    std::printf("%s: rank %d, error after %.1f s\n", failures == 0 ? "PASSED" : "FAILED", rank, waited);
    std::fflush(stdout);
    // The network is repaired for mpiexec, which has processes on both hosts, after the other host has timed out too.
    ::sleep(4);
    if (rank == 0) multihost::ask_network("heal h0 h1");
    ::_exit(failures == 0 ? 0 : 1);
}
