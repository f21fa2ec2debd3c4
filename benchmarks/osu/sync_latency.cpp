// osc_sync_latency: how long each synchronisation takes, for 2, 4, 8, ... ranks up to all of them. Every rank of the
// sub-communicator calls it as often as every other; the time is that of one call (or pair of calls) of one rank. With
// -c further rounds carry data that shows whether it synchronises.
#include <time.h>

#include <algorithm>

#include "../timing.h"
#include "program.h"
#include "ring.h"

namespace {

using osu::Ring;

void nothing(Ring&) {}

// Whose memory the epochs reach: every rank its right neighbour's, or all of them that of the first rank.
enum class Reaches { right, first };

struct Kind {
    osu::Column column;
    Reaches reaches;
    // Whether a target knows by its own calls that the epoch is over.
    bool active;
    // Before the first of many and after the last, outside the clock.
    void (*begin)(Ring&);
    void (*once)(Ring&);
    void (*end)(Ring&);
};

void lock_and_unlock(Ring& ring, int type) {
    MPI_Win_lock(type, 0, 0, ring.win());
    ring.put_mark_if_checking(0);
    if (type == MPI_LOCK_EXCLUSIVE) ring.count_if_checking(0);
    MPI_Win_unlock(0, ring.win());
}

const Kind kKinds[] = {
    {{"Fence (us)", "fence_us", 3},
     Reaches::right,
     true,
     [](Ring& ring) { MPI_Win_fence(MPI_MODE_NOPRECEDE, ring.win()); },
     [](Ring& ring) {
         ring.put_mark_if_checking(ring.right());
         MPI_Win_fence(0, ring.win());
     },
     [](Ring& ring) { MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, ring.win()); }},
    {{"PSCW ring (us)", "pscw_us", 3},
     Reaches::right,
     true,
     nothing,
     [](Ring& ring) {
         MPI_Win_post(ring.left_group(), 0, ring.win());
         MPI_Win_start(ring.right_group(), 0, ring.win());
         ring.put_mark_if_checking(ring.right());
         MPI_Win_complete(ring.win());
         MPI_Win_wait(ring.win());
     },
     nothing},
    {{"Lock shared (us)", "lock_shared_us", 3},
     Reaches::first,
     false,
     nothing,
     [](Ring& ring) { lock_and_unlock(ring, MPI_LOCK_SHARED); },
     nothing},
    {{"Lock excl. (us)", "lock_exclusive_us", 3},
     Reaches::first,
     false,
     nothing,
     [](Ring& ring) { lock_and_unlock(ring, MPI_LOCK_EXCLUSIVE); },
     nothing},
    {{"Lock_all (us)", "lock_all_us", 3},
     Reaches::right,
     false,
     nothing,
     [](Ring& ring) {
         MPI_Win_lock_all(0, ring.win());
         ring.put_mark_if_checking(ring.right());
         MPI_Win_unlock_all(ring.win());
     },
     nothing},
    // Of a word that was put: a flush with nothing to wait for is no synchronisation.
    {{"Put+flush (us)", "put_flush_us", 3},
     Reaches::right,
     false,
     [](Ring& ring) { MPI_Win_lock(MPI_LOCK_SHARED, ring.right(), 0, ring.win()); },
     [](Ring& ring) {
         ring.put_mark(ring.right());
         MPI_Win_flush(ring.right(), ring.win());
     },
     [](Ring& ring) { MPI_Win_unlock(ring.right(), ring.win()); }},
};

osu::Summary timed(Ring& ring, const Kind& kind, osu::Repeats repeats) {
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

// What `look` sees in this rank's memory where only a lock of its own orders it after the others' accesses.
template <class Look>
auto looking(const Ring& ring, Look&& look) {
    MPI_Win_lock(MPI_LOCK_SHARED, ring.rank(), 0, ring.win());
    const auto seen = look();
    MPI_Win_unlock(ring.rank(), ring.win());
    return seen;
}

// What this rank finds in its own memory after an epoch of all ranks.
bool finds_marks(const Ring& ring, Reaches reaches) {
    if (reaches == Reaches::right) return ring.has_mark_of(ring.left());
    bool all = true;
    for (int rank = 0; ring.rank() == 0 && rank < ring.ranks(); ++rank)
        all = all && ring.has_mark_of(rank);
    return all;
}

// A target of an active epoch looks at once, because the epoch's end is all that it may wait for; the others are told.
bool synchronises(Ring& ring, const Kind& kind, std::uint64_t& round) {
    bool right = true;
    kind.begin(ring);
    for (int i = 0; i < osu::kBatches; ++i) {
        ring.check_from(++round);
        kind.once(ring);
        const auto look = [&] { return finds_marks(ring, kind.reaches); };
        if (!kind.active) MPI_Barrier(ring.comm());
        right = (kind.active ? look() : looking(ring, look)) && right;
        MPI_Barrier(ring.comm());
    }
    kind.end(ring);
    return right;
}

// Exclusive locks keep the others out: what all of them counted is there, although counting is not atomic. They go on
// for so long that ranks which share a core meet too.
bool excludes(Ring& ring) {
    constexpr double kLongEnoughNs = 1e7;
    const auto total = [&] { return ring.total(); };
    const std::uint64_t before = looking(ring, total);
    std::uint64_t counted = 0;
    MPI_Barrier(ring.comm());
    const double end = bench::now_ns() + kLongEnoughNs;
    do {
        lock_and_unlock(ring, MPI_LOCK_EXCLUSIVE);
        ++counted;
    } while (bench::now_ns() < end);
    std::uint64_t all = 0;
    MPI_Allreduce(&counted, &all, 1, MPI_UINT64_T, MPI_SUM, ring.comm());
    return ring.rank() != 0 || looking(ring, total) == before + all;
}

bool all_synchronise(Ring& ring) {
    std::uint64_t round = 0;
    int mine = 1;
    for (const Kind& kind : kKinds)
        mine = synchronises(ring, kind, round) ? mine : 0;
    if (!excludes(ring)) mine = 0;
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, ring.comm());
    return all != 0;
}

// Ranks that have no part in a row sleep: polling they would take cores from those that are measured.
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
    for (const Kind& kind : kKinds)
        columns.push_back(kind.column);
    osu::Report report = run.report({"Ranks", "ranks", 0}, std::move(columns));
    for (int ranks = 2;; ranks = std::min(2 * ranks, run.ranks)) {
        MPI_Comm some = MPI_COMM_NULL;
        MPI_Comm_split(run.comm, run.rank < ranks ? 0 : MPI_UNDEFINED, run.rank, &some);
        std::vector<osu::Summary> figures;
        bool valid = true;
        if (some != MPI_COMM_NULL) {
            Ring ring(run.options.creation, some);
            for (const Kind& kind : kKinds)
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
