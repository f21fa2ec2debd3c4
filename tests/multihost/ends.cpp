// A program without windows whose reductions open connections between all its hosts; MPI_Finalize has to close them.
// With the argument `signals` a timer's signals interrupt MPI_Finalize, twice in each millisecond.
#include <mpi.h>
#include <signal.h>
#include <sys/time.h>

#include <cstring>
#include <vector>

namespace {

void interrupt_often() {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    constexpr int kCount = 100000;
    std::vector<int> ones(kCount, 1), sums(kCount);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bool right = true;
    for (int i = 0; i < 3; ++i) {
        MPI_Allreduce(ones.data(), sums.data(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        right = right && sums.front() == size && sums.back() == size;
    }
    if (argc > 1 && std::strcmp(argv[1], "signals") == 0) interrupt_often();
    MPI_Finalize();
    return right ? 0 : 1;
}
