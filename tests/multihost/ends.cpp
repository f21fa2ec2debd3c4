// A program without windows whose reductions open connections between all its hosts; MPI_Finalize has to close them.
#include <mpi.h>

#include <vector>

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
    MPI_Finalize();
    return right ? 0 : 1;
}
