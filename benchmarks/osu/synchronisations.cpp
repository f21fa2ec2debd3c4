// The table of synchronisations, and what their data must be (see synchronisations.h).
#include "synchronisations.h"

#include <algorithm>

#include "../timing.h"

namespace osu {
namespace {

void nothing(Ring&) {}

void lock_and_unlock(Ring& ring, int type) {
    MPI_Win_lock(type, 0, 0, ring.win());
    ring.put_mark_if_marking(0);
    if (type == MPI_LOCK_EXCLUSIVE) ring.count_if_counting(0);
    MPI_Win_unlock(0, ring.win());
}

}  // namespace

const Synchronisation kSynchronisation[kSynchronisations] = {
    {"fence",
     {"Fence (us)", "fence_us", 3},
     Reaches::right,
     true,
     [](Ring& ring) { MPI_Win_fence(MPI_MODE_NOPRECEDE, ring.win()); },
     [](Ring& ring) {
         ring.put_mark_if_marking(ring.right());
         MPI_Win_fence(0, ring.win());
     },
     [](Ring& ring) { MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, ring.win()); }},
    {"pscw",
     {"PSCW ring (us)", "pscw_us", 3},
     Reaches::right,
     true,
     nothing,
     [](Ring& ring) {
         MPI_Win_post(ring.left_group(), 0, ring.win());
         MPI_Win_start(ring.right_group(), 0, ring.win());
         ring.put_mark_if_marking(ring.right());
         MPI_Win_complete(ring.win());
         MPI_Win_wait(ring.win());
     },
     nothing},
    {"lock_shared",
     {"Lock shared (us)", "lock_shared_us", 3},
     Reaches::first,
     false,
     nothing,
     [](Ring& ring) { lock_and_unlock(ring, MPI_LOCK_SHARED); },
     nothing},
    {"lock_exclusive",
     {"Lock excl. (us)", "lock_exclusive_us", 3},
     Reaches::first,
     false,
     nothing,
     [](Ring& ring) { lock_and_unlock(ring, MPI_LOCK_EXCLUSIVE); },
     nothing},
    {"lock_all",
     {"Lock_all (us)", "lock_all_us", 3},
     Reaches::right,
     false,
     nothing,
     [](Ring& ring) {
         MPI_Win_lock_all(0, ring.win());
         ring.put_mark_if_marking(ring.right());
         MPI_Win_unlock_all(ring.win());
     },
     nothing},
    // Of a word that was put: a flush with nothing to wait for is no synchronisation.
    {"put_flush",
     {"Put+flush (us)", "put_flush_us", 3},
     Reaches::right,
     false,
     [](Ring& ring) { MPI_Win_lock(MPI_LOCK_SHARED, ring.right(), 0, ring.win()); },
     [](Ring& ring) {
         ring.put_mark(ring.right());
         MPI_Win_flush(ring.right(), ring.win());
     },
     [](Ring& ring) { MPI_Win_unlock(ring.right(), ring.win()); }},
};

const Synchronisation& synchronisation(std::string_view name) {
    return *std::find_if(std::begin(kSynchronisation), std::end(kSynchronisation),
                         [name](const Synchronisation& one) { return one.name == name; });
}

namespace {

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

}  // namespace

// The target of an active epoch checks at once, because only the epoch's end may order the data; other targets get a
// message first.
bool synchronises(Ring& ring, const Synchronisation& kind, std::uint64_t& round, int epochs) {
    bool right = true;
    kind.begin(ring);
    for (int i = 0; i < epochs; ++i) {
        ring.mark_from(++round);
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
// for so long that ranks which share a core meet too,
// on a loaded machine as well.
bool excludes(Ring& ring) {
    constexpr double kLongEnoughNs = 5e7;
    const auto total = [&] { return ring.total(); };
    const std::uint64_t before = looking(ring, total);
    ring.count();
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

}  // namespace osu
