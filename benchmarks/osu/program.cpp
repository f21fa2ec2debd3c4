// The frame of every program (see program.h).
#include "program.h"

#include <cstdio>
#include <type_traits>

namespace osu {
namespace {

constexpr int kSpeaker = 0;

// Rank 0 reads the command line for all, so that all measure the same and all stop at the same complaint.
Parsed parse_together(const Program& program, int argc, char** argv, int rank, int ranks) {
    Parsed parsed{Parsed::Outcome::run, program.defaults, {}};
    if (rank == kSpeaker) {
        parsed = parse(program, argc, argv);
        const std::string complaint = wrong_ranks(program, ranks);
        if (parsed.outcome == Parsed::Outcome::run && !complaint.empty())
            parsed = {Parsed::Outcome::wrong, {}, complaint};
    }
    static_assert(std::is_trivially_copyable_v<Options>);
    MPI_Bcast(&parsed.outcome, sizeof parsed.outcome, MPI_BYTE, kSpeaker, MPI_COMM_WORLD);
    MPI_Bcast(&parsed.options, sizeof parsed.options, MPI_BYTE, kSpeaker, MPI_COMM_WORLD);
    return parsed;
}

}  // namespace

double Run::longest(double mine) const {
    double most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, comm);
    return most;
}

double Run::sum(double mine) const {
    double total = 0;
    MPI_Allreduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, comm);
    return total;
}

bool Run::all(bool mine) const {
    const int here = mine ? 1 : 0;
    int everywhere = 0;
    MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_LAND, comm);
    return everywhere != 0;
}

int run(const Program& program, int argc, char** argv, const std::function<bool(const Run&)>& body) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const Parsed parsed = parse_together(program, argc, argv, rank, ranks);
    int status = 0;
    switch (parsed.outcome) {
        case Parsed::Outcome::run:
            status = body({program, parsed.options, MPI_COMM_WORLD, rank, ranks}) ? 0 : 1;
            break;
        case Parsed::Outcome::help:
            if (rank == kSpeaker) std::fputs(parsed.text.c_str(), stdout);
            break;
        case Parsed::Outcome::wrong:
            if (rank == kSpeaker) std::fprintf(stderr, "%s\n", parsed.text.c_str());
            status = 1;
            break;
    }
    MPI_Finalize();
    return status;
}

}  // namespace osu
