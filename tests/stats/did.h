// What a program did to its windows, and how the ranks print it: rank 0 prints for all, because a launcher may mix the
// lines of ranks.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

struct Did {
    unsigned long long calls = 0, bytes = 0;
};

inline std::string line_of(const std::string& window, const std::string& what, const Did& did) {
    return "did\t" + window + "\t" + what + "\t" + std::to_string(did.calls) + "\t" + std::to_string(did.bytes) + "\n";
}

/// Prints the text of each rank. Collective over MPI_COMM_WORLD.
inline void print_together(const std::string& text) {
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int mine = static_cast<int>(text.size());
    std::vector<int> bytes(static_cast<std::size_t>(size)), places(bytes.size());
    MPI_Gather(&mine, 1, MPI_INT, bytes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    std::exclusive_scan(bytes.begin(), bytes.end(), places.begin(), 0);
    std::string all(static_cast<std::size_t>(std::reduce(bytes.begin(), bytes.end())), '\0');
    MPI_Gatherv(text.data(), mine, MPI_CHAR, all.data(), bytes.data(), places.data(), MPI_CHAR, 0, MPI_COMM_WORLD);
    std::fwrite(all.data(), 1, all.size(), stdout);
    std::fflush(stdout);
}
