// Accumulate of 64 KiB of double while the target's own process runs fetch_and_ops on the same elements: both are
// timed by the origin's clock, and every element must end with the exact sum of what both sides added.
#include <random>

#include "measures.h"
#include "windows.h"

namespace bench {
namespace {

constexpr int kElements = 8192;
constexpr int kStopTag = 7;

// The target adds 1 to random elements of its own window until the origin says stop; `added` counts per element.
void add_until_told(const Context& c, MPI_Win win, std::vector<std::uint64_t>& added) {
    std::mt19937_64 random(kSeed);
    std::uniform_int_distribution<std::size_t> pick(0, kElements - 1);
    MPI_Request stop = MPI_REQUEST_NULL;
    MPI_Irecv(nullptr, 0, MPI_BYTE, kOrigin, kStopTag, c.comm, &stop);
    MPI_Win_lock_all(0, win);
    for (int stopped = 0; stopped == 0;) {
        for (int i = 0; i < 64; ++i) {
            const std::size_t at = pick(random);
            const double one = 1;
            double before = 0;
            MPI_Fetch_and_op(&one, &before, MPI_DOUBLE, kTarget, static_cast<MPI_Aint>(at * sizeof(double)), MPI_SUM,
                             win);
            MPI_Win_flush(kTarget, win);
            ++added[at];
        }
        MPI_Test(&stop, &stopped, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
}

void run_contended(const Context& c, const std::string& name) {
    WindowSet set(Flavour::allocate, 1, kElements * sizeof(double), c.comm);
    const MPI_Win win = set.window(0);
    std::vector<double> ones(kElements, 1.0);
    std::vector<std::uint64_t> added(kElements, 0);
    Timing timing;
    std::uint64_t accumulated = 0;
    MPI_Barrier(c.comm);
    if (c.origin()) {
        MPI_Win_lock_all(0, win);
        timing = timed(c.budget, 1, [&](std::uint64_t n) {
            for (; n > 0; --n, ++accumulated) {
                MPI_Accumulate(ones.data(), kElements, MPI_DOUBLE, kTarget, 0, kElements, MPI_DOUBLE, MPI_SUM, win);
                MPI_Win_flush(kTarget, win);
            }
        });
        MPI_Win_unlock_all(win);
        MPI_Send(nullptr, 0, MPI_BYTE, kTarget, kStopTag, c.comm);
    } else if (c.target()) {
        add_until_told(c, win, added);
    }
    MPI_Barrier(c.comm);
    accumulated = c.agree(accumulated);
    bool right = true;
    if (c.target()) {
        set.own_begin();
        const auto* value = reinterpret_cast<const double*>(set.memory(0));
        for (std::size_t i = 0; i < kElements; ++i) {
            right = right && value[i] == static_cast<double>(accumulated + added[i]);
        }
        set.own_end();
    }
    c.report(name, timing, right);
}

}  // namespace

void add_contended_measures(Measures& list) {
    list.push_back({"acc64k_contended.allocate", run_contended});
}

}  // namespace bench
