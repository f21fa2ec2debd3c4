// Active-target synchronisation and the life of a window, on allocated windows: an empty pair of fences, a pair around
// one put with and without asserts, post-start-complete-wait around one put, creation with free; and the host's
// reduce-scatter, with which a fence is compared that sends counts. Every rank takes part in each iteration.
#include <cstring>
#include <vector>

#include "measures.h"
#include "windows.h"

namespace bench {
namespace {

using Iteration = std::function<void(MPI_Win win, std::byte* mine, std::uint32_t offset, std::uint64_t mark)>;

// Runs `iteration` over the plan on all ranks at once, rank 0's clock counting.
void run_together(const Context& c, const std::string& name, bool rotate, bool& right, const Iteration& iteration) {
    const Plan plan = rotate ? rotating_plan(4096, 8, 1, kSeed) : hot_plan(4096);
    WindowSet set(Flavour::allocate, plan.windows, plan.window_bytes, c.comm);
    Cursor cursor;
    const Timing timing = c.timed_together(plan.steps.size(), [&](std::uint64_t n) {
        for (; n > 0; --n) {
            const Step s = plan.steps[cursor.step];
            const int w = static_cast<int>(s.window);
            iteration(set.window(w), set.memory(w), s.offset, stamp(cursor.step, cursor.lap));
            cursor.advance(plan.steps.size());
        }
    });
    c.report(name, timing, right);
}

bool holds(const std::byte* at, std::uint64_t mark) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value == mark;
}

void run_fence(const Context& c, const std::string& name, bool rotate) {
    bool right = true;
    run_together(c, name, rotate, right, [](MPI_Win win, std::byte*, std::uint32_t, std::uint64_t) {
        MPI_Win_fence(0, win);
        MPI_Win_fence(0, win);
    });
}

// Each rank puts to its right neighbour and finds its left neighbour's word after the second fence.
template <int kOpening, int kClosing>
void run_fence_put(const Context& c, const std::string& name, bool rotate) {
    const int neighbour = (c.rank + 1) % c.ranks;
    bool right = true;
    run_together(c, name, rotate, right, [&](MPI_Win win, std::byte* mine, std::uint32_t offset, std::uint64_t mark) {
        MPI_Win_fence(kOpening, win);
        MPI_Put(&mark, 8, MPI_BYTE, neighbour, offset, 8, MPI_BYTE, win);
        MPI_Win_fence(kClosing, win);
        right = right && holds(mine + offset, mark);
    });
}

void run_reduce_scatter(const Context& c, const std::string& name, bool rotate) {
    const std::vector<int> mine(static_cast<std::size_t>(c.ranks), 1);
    bool right = true;
    run_together(c, name, rotate, right, [&](MPI_Win, std::byte*, std::uint32_t, std::uint64_t) {
        int sum = 0;
        MPI_Reduce_scatter_block(mine.data(), &sum, 1, MPI_INT, MPI_SUM, c.comm);
        right = right && sum == c.ranks;
    });
}

// Rank 0 is always the origin and rank 1 the target, as in one direction of a halo exchange.
void run_pscw(const Context& c, const std::string& name, bool rotate) {
    MPI_Group everyone = MPI_GROUP_NULL;
    MPI_Group peer = MPI_GROUP_NULL;
    MPI_Comm_group(c.comm, &everyone);
    const int other = c.origin() ? kTarget : kOrigin;
    MPI_Group_incl(everyone, 1, &other, &peer);
    bool right = true;
    run_together(c, name, rotate, right, [&](MPI_Win win, std::byte* mine, std::uint32_t offset, std::uint64_t mark) {
        if (c.origin()) {
            MPI_Win_start(peer, 0, win);
            MPI_Put(&mark, 8, MPI_BYTE, kTarget, offset, 8, MPI_BYTE, win);
            MPI_Win_complete(win);
        } else if (c.target()) {
            MPI_Win_post(peer, 0, win);
            MPI_Win_wait(win);
            right = right && holds(mine + offset, mark);
        }
    });
    MPI_Group_free(&peer);
    MPI_Group_free(&everyone);
}

// Creates and frees; with rotation 64 windows stay alive and the one to go is not the one last made. Each new window
// is tried once: what the neighbour puts arrives.
void run_create_free(const Context& c, const std::string& name, bool rotate) {
    constexpr MPI_Aint kBytes = 65536;
    const std::size_t alive = rotate ? kRotatedWindows : 1;
    struct Live {
        MPI_Win win = MPI_WIN_NULL;
        std::byte* memory = nullptr;
    };
    std::vector<Live> live(alive);
    auto create = [&](Live& one) {
        MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, c.comm, static_cast<void*>(&one.memory), &one.win);
    };
    for (Live& one : live)
        create(one);
    std::uint64_t turn = 0;
    const Timing timing = c.timed_together(alive, [&](std::uint64_t n) {
        for (; n > 0; --n, ++turn) {
            Live& one = live[turn * 29 % alive];
            MPI_Win_free(&one.win);
            create(one);
        }
    });
    bool right = true;
    for (std::size_t i = 0; i < alive; ++i) {
        const std::uint64_t mark = stamp(i, static_cast<std::uint64_t>(kBytes));
        MPI_Win_fence(0, live[i].win);
        MPI_Put(&mark, 8, MPI_BYTE, (c.rank + 1) % c.ranks, kBytes - 8, 8, MPI_BYTE, live[i].win);
        MPI_Win_fence(0, live[i].win);
        right = right && holds(live[i].memory + kBytes - 8, mark);
    }
    for (Live& one : live)
        MPI_Win_free(&one.win);
    c.report(name, timing, right);
}

void add(Measures& list, const std::string& name, void (*run)(const Context&, const std::string&, bool)) {
    for (const bool rotate : {false, true}) {
        list.push_back({name + (rotate ? ".allocate.rot" : ".allocate"),
                        [run, rotate](const Context& c, const std::string& n) { run(c, n, rotate); }});
    }
}

}  // namespace

void add_sync_measures(Measures& list) {
    add(list, "fence", run_fence);
    add(list, "fence_put", run_fence_put<0, 0>);
    add(list, "fence_put_asserted", run_fence_put<MPI_MODE_NOPRECEDE, MPI_MODE_NOSUCCEED>);
    add(list, "reduce_scatter", run_reduce_scatter);
    add(list, "pscw_put", run_pscw);
    add(list, "create_free", run_create_free);
}

}  // namespace bench
