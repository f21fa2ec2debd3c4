// Chosen and listed steps.
#include "steps.h"

#include <mpi.h>

#include <cstdio>
#include <sstream>

namespace diff {

void Steps::keep(const std::string& numbers) {
    choosing_ = true;
    std::istringstream words(numbers);
    for (std::string word; std::getline(words, word, ',');)
        kept_.insert(std::stoul(word));
}

void Steps::print(std::size_t number, const std::string& what) {
    int me = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 0) std::printf("step %zu: %s\n", number, what.c_str());
}

Steps& steps() {
    static Steps all;
    return all;
}

}  // namespace diff
