// What node_bench and net_bench can measure: a list of named measures, contributed by one file per kind of operation,
// and the context that each of them runs in. Rank 0 measures and reports; rank 1 is the target.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan.h"
#include "timing.h"

namespace bench {

inline constexpr int kOrigin = 0;
inline constexpr int kTarget = 1;
inline constexpr std::uint64_t kSeed = 20220;

struct Context {
    MPI_Comm comm;
    int rank;
    int ranks;
    Budget budget;
    bool brief;

    bool origin() const { return rank == kOrigin; }
    bool target() const { return rank == kTarget; }

    // Collective. The measure is valid only if every rank found its own data right.
    void report(const std::string& measure, const Timing& timing, bool mine_valid) const;

    // Collective: rank 0's value everywhere.
    std::uint64_t agree(std::uint64_t value) const;

    // Collective counterpart of timed(): every rank runs body(n) with the same n, rank 0's clock counts.
    Timing timed_together(std::size_t steps, const std::function<void(std::uint64_t)>& body) const;
};

struct Measure {
    std::string name;
    std::function<void(const Context&, const std::string& name)> run;
};

using Measures = std::vector<Measure>;

void add_small_measures(Measures& list);
void add_bulk_measures(Measures& list);
void add_shape_measures(Measures& list);
void add_contended_measures(Measures& list);
void add_sync_measures(Measures& list);
void add_busy_measures(Measures& list);
void add_beside_measures(Measures& list);
void add_net_computing_measures(Measures& list);
void add_net_size_measures(Measures& list);
void add_net_stream_measures(Measures& list);
void add_net_idle_measures(Measures& list);

// The whole of a measuring program: main() with the measures that it offers. `at_end` runs before MPI_Finalize.
struct Program {
    const char* name;
    Budget (*budget)(bool brief);
    void (*at_end)();
};
int run_program(const Program& program, const Measures& list, int argc, char** argv);

}  // namespace bench
