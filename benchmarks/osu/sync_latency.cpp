// osc_sync_latency: how long each synchronisation takes, for 2, 4, 8, ... ranks up to all of them. Every rank of the
// sub-communicator calls it as often as every other; the time is that of one call (or pair of calls) of one rank. With
// -c further rounds carry data that shows whether it synchronises.
#include <time.h>

#include <algorithm>

#include "../timing.h"
#include "program.h"
#include "synchronisations.h"

namespace {

using osu::Ring;

osu::Summary timed(Ring& ring, const osu::Synchronisation& kind, osu::Repeats repeats) {
    const long per_batch = osu::per_batch(repeats.iterations);
    std::vector<double> batches;
    kind.begin(ring);
    for (long i = 0; i < repeats.warm_ups; ++i)
        kind.once(ring);
    for (int batch = 0; batch < osu::kBatches; ++batch) {
        MPI_Barrier(ring.comm());
        const double begin = bench::now_ns();
        for (long i = 0; i < per_batch; ++i)
            kind.once(ring);
        const double mine = (bench::now_ns() - begin) / static_cast<double>(per_batch) * 1e-3;
        double longest = 0;
        MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, ring.comm());
        batches.push_back(longest);
    }
    kind.end(ring);
    return osu::summarise(std::move(batches));
}

bool all_synchronise(Ring& ring) {
    std::uint64_t round = 0;
    int mine = 1;
    for (const osu::Synchronisation& kind : osu::kSynchronisation)
        mine = osu::synchronises(ring, kind, round) ? mine : 0;
    if (!osu::excludes(ring)) mine = 0;
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, ring.comm());
    return all != 0;
}

// Ranks without a part in a row sleep, because polling would take cores from the measured ranks.
void meet_idly(MPI_Comm comm) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm, &request);
    for (int met = 0; met == 0;) {
        const timespec pause{0, 1000000};
        nanosleep(&pause, nullptr);
        MPI_Test(&request, &met, MPI_STATUS_IGNORE);
    }
}

bool sync_latency(const osu::Run& run) {
    std::vector<osu::Column> columns;
    for (const osu::Synchronisation& kind : osu::kSynchronisation)
        columns.push_back(kind.column);
    osu::Report report = run.report({"Ranks", "ranks", 0}, std::move(columns));
    for (int ranks = 2;; ranks = std::min(2 * ranks, run.ranks)) {
        MPI_Comm some = MPI_COMM_NULL;
        MPI_Comm_split(run.comm, run.rank < ranks ? 0 : MPI_UNDEFINED, run.rank, &some);
        std::vector<osu::Summary> figures;
        bool valid = true;
        if (some != MPI_COMM_NULL) {
            Ring ring(run.options.creation, some);
            for (const osu::Synchronisation& kind : osu::kSynchronisation)
                figures.push_back(timed(ring, kind, run.options.small));
            if (run.options.validate) valid = all_synchronise(ring);
        }
        meet_idly(run.comm);
        if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
        report.row(static_cast<std::size_t>(ranks), figures, valid);
        if (ranks == run.ranks) break;
    }
    return run.all(report.finish());
}

}  // namespace

int main(int argc, char** argv) {
    osu::Options defaults;
    defaults.small = {900, 50};
    defaults.large = defaults.small;
    const osu::Program program{"osc_sync_latency", "latency of synchronisations", "w", defaults, osu::Ranks::several};
    return osu::run(program, argc, argv, sync_latency);
}
