// The timing of the seeds' experiments: collective, and limited where a call is slow.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "measures.h"

namespace bench {

// The average of a loop, the longest of all processes, as the seed has it. Where processes share cores a call may take
// many time slices, so what a loop and all of them may take is limited; the script repeats them.
// A loop of `long_ns` needs no more calls.
template <class Once>
Timing paced(const Context& c, Once&& once, double long_ns = 1e8) {
    constexpr double kEnoughNs = 8e7;
    // Of a shorter loop, where processes share cores, a good part is how they get out of the host's own collectives,
    // which poll for whole time slices.
    constexpr std::uint64_t kFewest = 256;
    constexpr int kWarmUps = 2;
    const auto warm_up = [&] {
        for (int i = 0; i < kWarmUps; ++i)
            once();
    };
    const double start = now_ns();
    std::vector<double> each;
    std::uint64_t calls = 1;
    for (;;) {
        MPI_Barrier(c.comm);
        // Neither the way out of the barrier nor the others' way into the next collective, where they may poll for
        // whole time slices, belongs to the calls.
        warm_up();
        const double begin = now_ns();
        for (std::uint64_t i = 0; i < calls; ++i)
            once();
        const double mine = now_ns() - begin;
        warm_up();
        double longest = 0;
        MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, c.comm);
        const bool few = calls < kFewest && longest < long_ns;
        if ((longest < c.budget.batch_ns || (few && !c.brief)) && calls < (std::uint64_t{1} << 24)) {
            calls *= 2;
            continue;
        }
        each.push_back(longest / static_cast<double>(calls));
        const bool enough = each.size() == static_cast<std::size_t>(c.budget.batches) || now_ns() - start > kEnoughNs;
        if (c.agree(enough ? 1 : 0) != 0) break;
    }
    return summarise(std::move(each), calls);
}

}  // namespace bench
