// The link between two devices goes down while a large put or get is in flight (two_devices.sh). The flush ends with
// an error soon after OSC_DEBUG=peer_timeout, and so does every later operation. The processes live and reach each
// other over the host MPI.
//
//   rdma_link_down put|get
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "plain_checks.h"

using namespace osct;

namespace {

constexpr int kBytes = 64 << 20;  // in flight while `ip` runs
constexpr double kMostSeconds = 90;

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const bool put = argc > 1 && std::strcmp(argv[1], "put") == 0;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::vector<char> memory(kBytes, 'm');
    const auto begin_transfer = [&](int bytes) {
        return put ? MPI_Put(memory.data(), bytes, MPI_CHAR, 1 - rank, 0, bytes, MPI_CHAR, win)
                   : MPI_Get(memory.data(), bytes, MPI_CHAR, 1 - rank, 0, bytes, MPI_CHAR, win);
    };
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    begin_transfer(4096);
    expect(MPI_Win_flush(1 - rank, win) == MPI_SUCCESS, "a transfer before the link goes down");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        expect(begin_transfer(kBytes) == MPI_SUCCESS, "the large transfer begins");
        expect(std::system("ip link set ve1 down") == 0, "the link goes down");
        const Clock::time_point begin = Clock::now();
        expect(class_of(MPI_Win_flush(1, win)) == MPI_ERR_OTHER, "its flush ends with an error");
        std::printf("the flush took %.1f s\n", seconds_since(begin));
        expect(seconds_since(begin) < kMostSeconds, "within the time-out");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const Clock::time_point begin = Clock::now();
    int error = begin_transfer(8);
    if (error == MPI_SUCCESS) error = MPI_Win_flush(1 - rank, win);
    expect(class_of(error) == MPI_ERR_OTHER, "a later operation of either process ends with an error");
    std::printf("rank %d: the later operation took %.1f s\n", rank, seconds_since(begin));
    expect(seconds_since(begin) < kMostSeconds, "within the time-out too");
    MPI_Barrier(MPI_COMM_WORLD);
    std::printf("%s: rank %d\n", g_failures == 0 ? "PASSED" : "FAILED", rank);
    std::fflush(stdout);
    // These may fail, and must return.
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return g_failures == 0 ? 0 : 1;
}
