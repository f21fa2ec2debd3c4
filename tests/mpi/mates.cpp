// find_equals() against its definition: the processes that give the same number, in every pattern of a few numbers over
// the ranks, numbers that lead to one process among them. Holds no window, so it is linked to src/window/mates.cpp.
#include "window/mates.h"

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "host/real.h"

int main(int argc, char** argv) {
    if (osc::host::find_host() != osc::host::Host::Ours) return 1;
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::mt19937_64 random(5);  // the same in all processes
    int wrong = 0;
    constexpr int kRounds = 100;
    for (int round = 0; round < kRounds; ++round) {
        // From one number for all to one for each; in some rounds all are multiples of the number of processes.
        const auto most = 1 + random() % static_cast<unsigned>(size);
        const std::uint64_t factor = round % 3 == 0 ? static_cast<unsigned>(size) : 0x9e3779b97f4a7c15ull;
        std::vector<std::uint64_t> numbers;
        for (int other = 0; other < size; ++other)
            numbers.push_back(random() % most * factor);
        std::vector<int> wanted{0};
        for (int other = 0; other < size; ++other)
            if (numbers[static_cast<std::size_t>(other)] == numbers[static_cast<std::size_t>(rank)]) {
                wanted.push_back(other);
                ++wanted[0];
            }
        std::vector<int> found(static_cast<std::size_t>(size) + 1, -1);
        MPI_Comm own = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &own);
        if (osc::find_equals(own, numbers[static_cast<std::size_t>(rank)], found) != MPI_SUCCESS) ++wrong;
        MPI_Comm_free(&own);
        found.resize(wanted.size());
        if (found != wanted) ++wrong;
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) std::printf(wrong == 0 ? "No errors\n" : "%d wrong\n", wrong);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
