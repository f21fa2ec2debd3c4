// The MPI side of the experiments of seed 000 (Gropp and Thakur), run by the script of the same name: what two
// barriers, one reduce-scatter and two fences cost (its Figure 2), and lock-put-unlock of n longs (its Table 1).
//   seed_000_mpi [--short] [--list] [MEASURE...]
#include <algorithm>
#include <numeric>
#include <vector>

#include "measures.h"
#include "paced.h"
#include "seed_000.h"
#include "windows.h"

namespace bench {
namespace {

void run_barriers(const Context& c, const std::string& name) {
    const Timing timing = paced(c, [&] {
        MPI_Barrier(c.comm);
        MPI_Barrier(c.comm);
    });
    c.report(name, timing, true);
}

// Of one short for each process, as a deferred fence needs it.
void run_reduce_scatter(const Context& c, const std::string& name) {
    const std::vector<short> mine(static_cast<std::size_t>(c.ranks), 1);
    const std::vector<int> counts(static_cast<std::size_t>(c.ranks), 1);
    bool right = true;
    const Timing timing = paced(c, [&] {
        short sum = 0;
        MPI_Reduce_scatter(mine.data(), &sum, counts.data(), MPI_SHORT, MPI_SUM, c.comm);
        right = right && sum == c.ranks;
    });
    c.report(name, timing, right);
}

// An epoch without operations, as the seed has it.
void run_fences(const Context& c, const std::string& name, int opening, int closing) {
    WindowSet set(Flavour::alloc_mem, 1, 4096, c.comm);
    const MPI_Win win = set.window(0);
    const Timing timing = paced(c, [&] {
        MPI_Win_fence(opening, win);
        MPI_Win_fence(closing, win);
    });
    c.report(name, timing, true);
}

void run_lock_put_unlock(const Context& c, const std::string& name, std::size_t longs) {
    WindowSet set(Flavour::alloc_mem, 1, longs * sizeof(long), c.comm);
    const MPI_Win win = set.window(0);
    const int count = static_cast<int>(longs);
    const auto data = page_aligned(longs);
    std::iota(data.get(), data.get() + longs, 1L);
    std::uint64_t laps = 0;
    Timing timing;
    MPI_Barrier(c.comm);
    if (c.origin()) {
        timing = timed(c.budget, 1, [&](std::uint64_t n) {
            for (; n > 0; --n) {
                *data = static_cast<long>(++laps);
                MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, win);
                MPI_Put(data.get(), count, MPI_LONG, kTarget, 0, count, MPI_LONG, win);
                MPI_Win_unlock(kTarget, win);
            }
        });
    }
    // The target waits here, inside MPI, while the origin measures.
    MPI_Barrier(c.comm);
    *data = static_cast<long>(c.agree(laps));
    bool right = true;
    if (c.target()) {
        set.own_begin();
        right = std::equal(data.get(), data.get() + longs, reinterpret_cast<const long*>(set.memory(0)));
        set.own_end();
    }
    c.report(name, timing, right);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    using bench::Context;
    using Name = const std::string&;
    constexpr int kClosing = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED;
    bench::Measures list = {
        {"barriers", bench::run_barriers},
        {"reduce_scatter", bench::run_reduce_scatter},
        {"fences_asserted",
         [](const Context& c, Name name) { bench::run_fences(c, name, MPI_MODE_NOPRECEDE, kClosing); }},
        {"fences", [](const Context& c, Name name) { bench::run_fences(c, name, 0, 0); }},
    };
    for (const std::size_t longs : bench::kCounts) {
        list.push_back({"lock_put_unlock." + std::to_string(longs),
                        [longs](const Context& c, Name name) { bench::run_lock_put_unlock(c, name, longs); }});
    }
    return bench::run_program({"seed_000_mpi", bench::budget, nullptr}, list, argc, argv);
}
