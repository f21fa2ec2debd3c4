// What the functions cost whose cost formulas seed 004 (foMPI) gives, run by the script of the same name.
//   seed_004_mpi [--short] [--list] [MEASURE...]
// Its measures: OPERATION.BYTES, with the flush that completes it; pscw.K, epochs of all processes with K neighbours
// each; fence, flush, sync; and calls that come in pairs, each timed by itself: a measure of several calls prints a
// line for each of them. Windows are made by all processes.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "measures.h"
#include "paced.h"
#include "seed_epochs.h"

namespace bench {
namespace {

constexpr int kNeighbours[] = {1, 2, 4};
constexpr MPI_Aint kWindowBytes = 4096;

// What no network does by itself: foMPI locks the target, gets, works out and puts.
struct Min final : osu::Operation {
    bool sends() const override { return true; }
    bool fetches() const override { return false; }
    void issue(const osu::Transfer& t) const override {
        const int count = t.bytes / static_cast<int>(sizeof(std::int64_t));
        MPI_Accumulate(t.operand, count, MPI_INT64_T, t.target, t.at, count, MPI_INT64_T, MPI_MIN, t.win);
    }
    void apply(std::byte* memory, const std::byte* operand, std::size_t total, std::size_t) const override {
        for (std::size_t i = 0; i < total; i += sizeof(std::int64_t)) {
            std::array<std::int64_t, 2> of{};
            std::memcpy(of.data(), memory + i, sizeof of[0]);
            std::memcpy(&of[1], operand + i, sizeof of[1]);
            const std::int64_t least = std::min(of[0], of[1]);
            std::memcpy(memory + i, &least, sizeof least);
        }
    }
};
const Min kMin;

// What the calls of one sequence work on.
struct Scene {
    MPI_Comm comm;
    MPI_Win win = MPI_WIN_NULL;
    void* memory = nullptr;
    MPI_Group group = MPI_GROUP_NULL;
};

// Calls that follow each other, each with a name.
struct Call {
    const char* name;
    void (*make)(Scene&);
};
struct Sequence {
    const char* name;
    std::vector<Call> calls;
};

// What reading the clock takes: the least of some batches, in one of which the core may be lost.
double clock_ns() {
    constexpr int kBatches = 5;
    constexpr int kReadings = 1000;
    double least = 1e9;
    for (int batch = 0; batch < kBatches; ++batch) {
        const double begin = now_ns();
        for (int i = 0; i < kReadings; ++i)
            now_ns();
        least = std::min(least, (now_ns() - begin) / kReadings);
    }
    return least;
}

// The median of single calls, less the reading of the clock: what is lost to others that share the core is in few of
// them.
void run_sequence(const Context& c, const Sequence& sequence, Scene& scene, bool takes_part, bool right) {
    constexpr std::size_t kMost = 1 << 15;
    const std::size_t calls = sequence.calls.size();
    std::vector<std::vector<double>> each(calls);
    const double reading = clock_ns();
    paced(
        c,
        [&] {
            if (!takes_part) return;
            for (std::size_t i = 0; i < calls; ++i) {
                const double begin = now_ns();
                sequence.calls[i].make(scene);
                const double took = now_ns() - begin - reading;
                if (each[i].size() < kMost) each[i].push_back(std::max(took, 0.1));
            }
        },
        kSeedLoopNs);
    for (std::size_t i = 0; i < calls; ++i) {
        const Timing timing = takes_part ? summarise(std::move(each[i]), 1) : Timing{};
        c.report(sequence.calls[i].name, timing, right);
    }
}

const Sequence kLocks[] = {
    {"lock_exclusive",
     {{"lock_exclusive", [](Scene& s) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, s.win); }},
      {"unlock_exclusive", [](Scene& s) { MPI_Win_unlock(kTarget, s.win); }}}},
    {"lock_shared",
     {{"lock_shared", [](Scene& s) { MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, s.win); }},
      {"unlock_shared", [](Scene& s) { MPI_Win_unlock(kTarget, s.win); }}}},
    {"lock_all",
     {{"lock_all", [](Scene& s) { MPI_Win_lock_all(0, s.win); }},
      {"unlock_all", [](Scene& s) { MPI_Win_unlock_all(s.win); }}}},
};

const Sequence kPost = {"post",
                        {{"post", [](Scene& s) { MPI_Win_post(s.group, 0, s.win); }},
                         {"start", [](Scene& s) { MPI_Win_start(s.group, 0, s.win); }},
                         {"complete", [](Scene& s) { MPI_Win_complete(s.win); }},
                         {"wait", [](Scene& s) { MPI_Win_wait(s.win); }}}};

void free_window(Scene& s) {
    MPI_Win_free(&s.win);
}

const Sequence kWindows[] = {
    {"win_create",
     {{"win_create", [](Scene& s) { MPI_Win_create(s.memory, kWindowBytes, 1, MPI_INFO_NULL, s.comm, &s.win); }},
      {"win_create_free", free_window}}},
    {"win_allocate",
     {{"win_allocate",
       [](Scene& s) {
           void* base = nullptr;
           MPI_Win_allocate(kWindowBytes, 1, MPI_INFO_NULL, s.comm, static_cast<void*>(&base), &s.win);
       }},
      {"win_free", free_window}}},
    {"win_dynamic",
     {{"win_dynamic", [](Scene& s) { MPI_Win_create_dynamic(MPI_INFO_NULL, s.comm, &s.win); }},
      {"attach", [](Scene& s) { MPI_Win_attach(s.win, s.memory, kWindowBytes); }},
      {"detach", [](Scene& s) { MPI_Win_detach(s.win, s.memory); }},
      {"win_dynamic_free", free_window}}},
    {"win_shared",
     {{"win_shared",
       [](Scene& s) {
           void* base = nullptr;
           MPI_Win_allocate_shared(kWindowBytes, 1, MPI_INFO_NULL, s.comm, static_cast<void*>(&base), &s.win);
       }},
      {"win_shared_free", free_window}}},
};

void run_locks(const Context& c, const Sequence& sequence) {
    osu::Ring ring(osu::Creation::allocate, c.comm);
    Scene scene{c.comm, ring.win()};
    run_sequence(c, sequence, scene, c.origin(), osu::excludes(ring));
}

void run_post(const Context& c) {
    osu::Ring ring(osu::Creation::allocate, c.comm);
    std::uint64_t round = 0;
    const bool right = osu::synchronises(ring, osu::synchronisation("pscw"), round);
    // Of two processes the neighbour on both sides is the same.
    Scene scene{c.comm, ring.win(), nullptr, ring.right_group()};
    run_sequence(c, kPost, scene, true, right);
}

// A window of the kind carries a word to each neighbour.
bool works(const Context& c, const Sequence& sequence, Scene& scene) {
    const std::uint64_t mark = kSeed + static_cast<std::uint64_t>(c.rank);
    const int next = (c.rank + 1) % c.ranks;
    const bool dynamic = sequence.calls.size() > 2;
    sequence.calls[0].make(scene);
    if (dynamic) sequence.calls[1].make(scene);
    void* mine = scene.memory;
    int there = 1;
    if (!dynamic) MPI_Win_get_attr(scene.win, MPI_WIN_BASE, static_cast<void*>(&mine), &there);
    MPI_Aint address = 0;
    if (dynamic) MPI_Get_address(mine, &address);
    std::vector<MPI_Aint> all(static_cast<std::size_t>(c.ranks));
    MPI_Allgather(&address, 1, MPI_AINT, all.data(), 1, MPI_AINT, c.comm);
    MPI_Win_fence(0, scene.win);
    MPI_Put(&mark, 1, MPI_UINT64_T, next, all[static_cast<std::size_t>(next)], 1, MPI_UINT64_T, scene.win);
    MPI_Win_fence(0, scene.win);
    std::uint64_t found = 0;
    std::memcpy(&found, mine, sizeof found);
    if (dynamic) sequence.calls[2].make(scene);
    free_window(scene);
    return found == kSeed + static_cast<std::uint64_t>((c.rank + c.ranks - 1) % c.ranks);
}

void run_windows(const Context& c, const Sequence& sequence) {
    const osu::Memory memory(kWindowBytes);
    Scene scene{c.comm, MPI_WIN_NULL, memory.at()};
    const bool right = works(c, sequence, scene);
    run_sequence(c, sequence, scene, true, right);
}

MPI_Group neighbours(const Context& c, int count, int direction) {
    std::vector<int> ranks;
    for (int i = 1; i <= count; ++i)
        ranks.push_back((c.rank + direction * i + c.ranks) % c.ranks);
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm_group(c.comm, &all);
    MPI_Group_incl(all, count, ranks.data(), &some);
    MPI_Group_free(&all);
    return some;
}

// Each process has `count` neighbours on its left, which reach it, and as many on its right, which it reaches.
void run_neighbours(const Context& c, const std::string& name, int count) {
    if (count >= c.ranks) return;
    osu::Ring ring(osu::Creation::allocate, c.comm);
    MPI_Group left = neighbours(c, count, -1);
    MPI_Group right = neighbours(c, count, 1);
    const auto epoch = [&](bool puts) {
        MPI_Win_post(left, 0, ring.win());
        MPI_Win_start(right, 0, ring.win());
        for (int i = 1; puts && i <= count; ++i)
            ring.put_mark((c.rank + i) % c.ranks);
        MPI_Win_complete(ring.win());
        MPI_Win_wait(ring.win());
    };
    const Timing timing = paced(
        c, [&] { epoch(false); }, kSeedLoopNs);
    ring.mark_from(1);
    epoch(true);
    bool came = true;
    for (int i = 1; i <= count; ++i)
        came = came && ring.has_mark_of((c.rank - i + c.ranks) % c.ranks);
    MPI_Group_free(&left);
    MPI_Group_free(&right);
    c.report(name, timing, came);
}

// No data depends on it where memory is unified.
void run_sync(const Context& c, const std::string& name) {
    const osu::Window window(osu::Creation::allocate, 8, c.comm);
    MPI_Win_lock_all(0, window.handle());
    const Timing timing = paced(
        c, [&] { MPI_Win_sync(window.handle()); }, kSeedLoopNs);
    MPI_Win_unlock_all(window.handle());
    c.report(name, timing, true);
}

void add_operations(Measures& list) {
    const std::pair<const osu::Operation&, std::string> bulk[] = {
        {osu::kPut, "put"}, {osu::kGet, "get"}, {osu::kAccumulate, "accumulate_sum"}, {kMin, "accumulate_min"}};
    for (const auto& [operation, name] : bulk) {
        add_sizes(list, name, {osu::Sync::flush, &operation});
    }
    add_transfer(list, "fetch_and_op", {osu::Sync::flush, &osu::kFetchAndOp, 8});
    add_transfer(list, "compare_and_swap", {osu::Sync::flush, &osu::kCompareAndSwap, 8});
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    using bench::Context;
    using Name = const std::string&;
    bench::Measures list;
    bench::add_operations(list);
    list.push_back({"sync", bench::run_sync});
    list.push_back({"flush", [](const Context& c, Name name) { bench::run_epochs(c, bench::kEmptyFlush, name); }});
    list.push_back(
        {"fence", [](const Context& c, Name name) { bench::run_epochs(c, osu::synchronisation("fence"), name); }});
    for (const bench::Sequence& one : bench::kLocks)
        list.push_back({one.name, [&one](const Context& c, Name) { bench::run_locks(c, one); }});
    list.push_back({bench::kPost.name, [](const Context& c, Name) { bench::run_post(c); }});
    for (const int count : bench::kNeighbours)
        list.push_back({"pscw." + std::to_string(count),
                        [count](const Context& c, Name name) { bench::run_neighbours(c, name, count); }});
    for (const bench::Sequence& one : bench::kWindows)
        list.push_back({one.name, [&one](const Context& c, Name) { bench::run_windows(c, one); }});
    return bench::run_program({"seed_004_mpi", bench::seed_budget, nullptr}, list, argc, argv);
}
