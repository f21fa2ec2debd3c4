// More ranks than cores mix everything in an order drawn from a seed: windows of all kinds are created and freed, with
// exclusive and shared locks of random targets, accumulates, fences, and posts among random pairs. The sums of each
// rank's additions show in the end that none was lost; pairs of words show that the locks exclude.
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>

#include "../mpi/harness.h"
#include "../mpi/windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock", "MPI_Win_lock_all", "MPI_Win_fence", "MPI_Win_post", "MPI_Accumulate",
             "MPI_Fetch_and_op", "MPI_Put", "MPI_Get")

namespace {

constexpr std::size_t kWords = 64;  // 0: sums; 8 and 16: a pair that changes together; 32: posts
using Random = std::mt19937;

int draw(Random& random, int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
}

struct Stressed {
    explicit Stressed(WindowKind kind) : window(kind, kWords * 8), added(static_cast<std::size_t>(size()), 0) {}
    Window window;
    std::vector<long> added;           // by this rank, to each target
    std::deque<long> values, results;  // of operations that may not be complete
};

void add(Stressed& at, Random& random, int target) {
    const long& value = at.values.emplace_back(draw(random, 1000));
    long& old = at.results.emplace_back(0);
    if (draw(random, 2) == 0)
        MPI_Accumulate(&value, 1, MPI_LONG, target, at.window.at(target, 0), 1, MPI_LONG, MPI_SUM, at.window.handle());
    else
        MPI_Fetch_and_op(&value, &old, MPI_LONG, target, at.window.at(target, 0), MPI_SUM, at.window.handle());
    at.added[static_cast<std::size_t>(target)] += value;
}

// Under a lock: readers see both words of the pair equal, writers change both.
void visit_pair(Stressed& at, Random& random, int target) {
    const MPI_Win win = at.window.handle();
    const bool write = draw(random, 3) == 0;
    long low = -1, high = -2;
    MPI_Win_lock(write ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win);
    MPI_Get(&low, 1, MPI_LONG, target, at.window.at(target, 64), 1, MPI_LONG, win);
    MPI_Get(&high, 1, MPI_LONG, target, at.window.at(target, 128), 1, MPI_LONG, win);
    MPI_Win_flush(target, win);
    CHECK_EQ(low, high);
    if (write) {
        ++low;
        MPI_Put(&low, 1, MPI_LONG, target, at.window.at(target, 64), 1, MPI_LONG, win);
        MPI_Put(&low, 1, MPI_LONG, target, at.window.at(target, 128), 1, MPI_LONG, win);
    }
    MPI_Win_unlock(target, win);
}

// Everything that this rank has begun is complete.
void forget(Stressed& at) {
    at.values.clear();
    at.results.clear();
}

void passive(Stressed& at, Random& random) {
    for (int step = draw(random, 40); step >= 0; --step) {
        const int target = draw(random, size());
        switch (draw(random, 4)) {
            case 0:
                visit_pair(at, random, target);
                break;
            case 1:
                MPI_Win_lock_all(0, at.window.handle());
                for (int i = draw(random, 5); i >= 0; --i)
                    add(at, random, draw(random, size()));
                MPI_Win_unlock_all(at.window.handle());
                break;
            default:
                MPI_Win_lock(draw(random, 2) == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0,
                             at.window.handle());
                add(at, random, target);
                MPI_Win_unlock(target, at.window.handle());
        }
        forget(at);
    }
}

void fenced(Stressed& at, Random& random, Random& common) {
    MPI_Win_fence(0, at.window.handle());
    for (int epoch = draw(common, 5); epoch >= 0; --epoch) {
        for (int i = draw(random, 5); i >= 0; --i)
            add(at, random, draw(random, size()));
        MPI_Win_fence(0, at.window.handle());
        forget(at);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, at.window.handle());
}

// All ranks exchange over a ring of a random step, in a round that all know.
void posted(Stressed& at, Random& common) {
    const int step = 1 + draw(common, size());
    const long value = draw(common, 1000);
    const int to = (rank() + step) % size(), from = (rank() + step * (size() - 1)) % size();
    const osct::Group origins(from), targets(to);
    const long out = value * 100 + rank();
    MPI_Win_post(origins, 0, at.window.handle());
    MPI_Win_start(targets, 0, at.window.handle());
    MPI_Put(&out, 1, MPI_LONG, to, at.window.at(to, 256), 1, MPI_LONG, at.window.handle());
    MPI_Win_complete(at.window.handle());
    MPI_Win_wait(at.window.handle());
    CHECK_EQ(at.window.base<long>()[32], value * 100 + from);
}

void finish(std::unique_ptr<Stressed>& at) {
    std::vector<long> all(at->added.size());
    MPI_Allreduce(at->added.data(), all.data(), size(), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(at->window.base<long>()[0], all[static_cast<std::size_t>(rank())]);
    CHECK_EQ(at->window.base<long>()[8], at->window.base<long>()[16]);
    at.reset();
}

}  // namespace

CASE(everything_at_once) {
    const char* given = std::getenv("OSC_TEST_SEED");
    const auto seed = given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 20u;
    Random common(seed);                                        // for decisions that all ranks share
    Random random(seed * 977 + static_cast<unsigned>(rank()));  // for decisions of this rank
    std::vector<std::unique_ptr<Stressed>> windows(4);
    for (int round = osct::full() ? 3000 : 100; round > 0; --round) {
        std::unique_ptr<Stressed>& at = windows[static_cast<std::size_t>(draw(common, 4))];
        if (!at) at = std::make_unique<Stressed>(kAllWindowKinds[draw(common, 5)]);
        switch (draw(common, 6)) {
            case 0:
                fenced(*at, random, common);
                break;
            case 1:
                posted(*at, common);
                break;
            case 2:
                MPI_Barrier(MPI_COMM_WORLD);
                finish(at);
                break;
            default:
                passive(*at, random);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::unique_ptr<Stressed>& at : windows)
        if (at) finish(at);
}
