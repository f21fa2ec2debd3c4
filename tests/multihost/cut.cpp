// The network between two hosts is cut in the middle of a lock_all epoch: calls that wait for the other host end with
// an error soon after OSC_DEBUG=peer_timeout, and so does every later call. With the argument `transfer` the cut is in
// the middle of large transfers in both directions. The program ends without MPI_Finalize, which could not complete.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "debug_setting.h"
#include "network.h"
#include "plain_checks.h"

using namespace osct;

namespace {

constexpr int kLarge = 8 << 20;  // longs

// Large puts until one of them fails; the seconds that its flush took.
double transfer(int to, bool cuts, MPI_Win win) {
    const std::vector<long> data(kLarge, 7);
    std::thread cutter;
    if (cuts)
        cutter = std::thread([] {
            ::usleep(500000);
            multihost::ask_network("cut h0 h1");
        });
    int error = MPI_SUCCESS;
    Clock::time_point begin;
    while (error == MPI_SUCCESS) {
        begin = Clock::now();
        error = MPI_Put(data.data(), kLarge, MPI_LONG, to, 0, kLarge, MPI_LONG, win);
        if (error == MPI_SUCCESS) error = MPI_Win_flush(to, win);
    }
    const double took = seconds_since(begin);
    expect(class_of(error) == MPI_ERR_OTHER, "a transfer across the cut ends with an error");
    if (cuts) cutter.join();
    return took;
}

// A small get after the cut; the seconds that its flush took.
double small(int to, bool cuts, MPI_Win win) {
    if (cuts) multihost::ask_network("cut h0 h1");
    ::sleep(1);
    long got = 0;
    const Clock::time_point begin = Clock::now();
    MPI_Get(&got, 1, MPI_LONG, to, 0, 1, MPI_LONG, win);
    expect(class_of(MPI_Win_flush(to, win)) == MPI_ERR_OTHER, "a flush behind the cut ends with an error");
    return seconds_since(begin);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(kLarge * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    base[0] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const long value = 7;
    MPI_Win_lock_all(0, win);
    MPI_Put(&value, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win);
    expect(MPI_Win_flush(1 - rank, win) == MPI_SUCCESS, "a put before the cut");
    MPI_Barrier(MPI_COMM_WORLD);
    const double waited = argc > 1 ? transfer(1 - rank, rank == 0, win) : small(1 - rank, rank == 0, win);
    // The rest is for a machine without a core to spare.
    const double peer_timeout = std::atof(debug_setting("peer_timeout").c_str());
    expect(waited < peer_timeout + 10, "within the time-out");
    const Clock::time_point again = Clock::now();
    MPI_Put(&value, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win);
    expect(MPI_Win_flush(1 - rank, win) != MPI_SUCCESS, "the next flush fails too");
    expect(seconds_since(again) < peer_timeout, "and sooner");
    expect(base[0] == 7, "what came before is there");
    std::printf("%s: rank %d, error after %.1f s\n", g_failures == 0 ? "PASSED" : "FAILED", rank, waited);
    std::fflush(stdout);
    // The network is repaired for mpiexec, which has processes on both hosts, after the other host has timed out too.
    ::sleep(4);
    if (rank == 0) multihost::ask_network("heal h0 h1");
    ::_exit(g_failures == 0 ? 0 : 1);
}
