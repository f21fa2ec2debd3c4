// Which processes of other nodes a process connects to: those that it operates on, and in collective calls that wait
// long a share of the others, never all.
#include <chrono>
#include <thread>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate", "MPI_Win_fence", "MPI_Put")

namespace {

// So long that the others look for dead processes several times.
void come_late() {
    if (rank() == size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
}

int on_this_node() {
    int count = 0;
    for (int peer = 0; peer < size(); ++peer)
        count += osct::same_node(peer) ? 1 : 0;
    return count;
}

// The largest number of connections of a process.
long long most() {
    long long all = osct::counter("network.connections");
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

}  // namespace

// With two nodes, each process has its share, and the first of a node the first of the other.
CASE(a_late_process_connects_few) {
    SKIP_IF(on_this_node() * 2 != size());
    come_late();
    Window win(WindowKind::Allocate, 64);
    CHECK(most() <= 1);
    come_late();
    MPI_Win_fence(0, win);
    CHECK(most() <= 1);
    // A put connects to its target alone.
    const long value = rank();
    const int target = (rank() + on_this_node() + 1) % size();
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, win));
    MPI_Win_fence(0, win);
    CHECK(most() <= 3);
    come_late();
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK(most() <= 3);
    come_late();
}
