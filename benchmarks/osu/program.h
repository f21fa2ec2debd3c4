// The frame of every program: MPI from start to end, the command line, the number of ranks and the exit code.
#pragma once

#include <mpi.h>

#include <functional>
#include <vector>

#include "options.h"
#include "report.h"

namespace osu {

struct Run {
    const Program& program;
    Options options;
    MPI_Comm comm;
    int rank;
    int ranks;

    Report report(Column label, std::vector<Column> columns) const {
        return {program, options, ranks, rank == 0, label, std::move(columns)};
    }
    // Collective.
    double longest(double mine) const;
    double sum(double mine) const;
    bool all(bool mine) const;
};

// `body` is collective and says whether all data was right. Returns what main() returns.
int run(const Program& program, int argc, char** argv, const std::function<bool(const Run&)>& body);

}  // namespace osu
