// Measures the constants of the simulation of large jobs, and the times that check it. benchmarks/scale runs it with a
// rank on each host.
//   scale_bench [--repeats N] [--list] [SCENARIO...]
// Prints a line of JSON for each: ns and libosc's messages of one epoch, acquisition or window, the longest of all
// ranks and their average; checks the data. "way" and "host_way" are half of a round trip, "gap" the time of one
// message in a row.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "finalize.h"
#include "timing.h"

// Of libosc, if that is there.
extern "C" __attribute__((weak)) int osc_counter(const char* name, unsigned long long* value);

namespace {

int g_rank = 0;
int g_ranks = 0;
int g_repeats = 20;
bool g_right = true;

double sent() {
    unsigned long long value = 0;
    if (osc_counter != nullptr) osc_counter("network.messages", &value);
    return static_cast<double>(value);
}

void check(bool right) {
    g_right = g_right && right;
}

struct Longs {
    explicit Longs(int count, MPI_Comm comm = MPI_COMM_WORLD) {
        MPI_Win_allocate(count * static_cast<MPI_Aint>(sizeof(long)), sizeof(long), MPI_INFO_NULL, comm, &memory, &win);
        std::memset(memory, 0, static_cast<std::size_t>(count) * sizeof(long));
        MPI_Win_lock_all(0, win);  // the stores above, before others' accesses
        MPI_Win_sync(win);
        MPI_Win_unlock_all(win);
        MPI_Barrier(comm);
    }
    ~Longs() { MPI_Win_free(&win); }
    Longs(const Longs&) = delete;
    Longs& operator=(const Longs&) = delete;
    long* memory = nullptr;
    MPI_Win win = MPI_WIN_NULL;
};

// What a repeat is: so many parts that the time is shared among, and so many that the messages are.
struct Repeat {
    double parts;
    double counted;
};

// once(i) is one repeat, collective or not. Repeats before and after the timed ones keep the host's own barrier out of
// the measurement. look(), if given, checks the data after all `turns` repeats.
void timed(const std::string& name, Repeat repeat, const std::function<void(long)>& once,
           const std::function<void(long turns)>& look = {}) {
    constexpr int kSettle = 2;
    long turn = 0;
    const auto several = [&](int times) {
        for (int i = 0; i < times; ++i)
            once(++turn);
    };
    once(++turn);  // asks for what is asked for once
    // No process sends between the two barriers, so the replies of this process's network thread are counted too,
    // whichever process starts first.
    MPI_Barrier(MPI_COMM_WORLD);
    const double before = sent();
    MPI_Barrier(MPI_COMM_WORLD);
    several(kSettle);
    const double begin = bench::now_ns();
    several(g_repeats);
    const double mine = bench::now_ns() - begin;
    several(kSettle);
    MPI_Barrier(MPI_COMM_WORLD);
    const double messages = sent() - before;
    if (look) look(turn);
    double longest = 0;
    double all = 0;
    MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&messages, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    int right = g_right ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (g_rank == 0)
        std::printf("{\"scenario\": \"%s\", \"processes\": %d, \"ns\": %.1f, \"messages\": %.4f, \"valid\": %s}\n",
                    name.c_str(), g_ranks, longest / g_repeats / repeat.parts, all / (turn - 1) / repeat.counted,
                    right != 0 ? "true" : "false");
    std::fflush(stdout);
}

int across(int steps) {
    return ((g_rank + steps) % g_ranks + g_ranks) % g_ranks;
}

void way(const std::string& name, int words) {
    Longs window(words);
    if (g_rank == 0) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
    timed(name, {2, 2}, [&](long) {
        if (g_rank != 0) return;
        std::vector<long> got(static_cast<std::size_t>(words), -1);
        // A get by itself would not go by message.
        MPI_Get_accumulate(nullptr, 0, MPI_LONG, got.data(), words, MPI_LONG, 1, 0, words, MPI_LONG, MPI_NO_OP,
                           window.win);
        MPI_Win_flush(1, window.win);
        check(got.front() == 0 && got.back() == 0);
    });
    if (g_rank == 0) MPI_Win_unlock(1, window.win);
}

// Of messages one behind the other, each of which is answered: what sending one and receiving one costs together. To be
// run with OSC_DEBUG=net_protocol=messages.
void gap(const std::string& name) {
    constexpr int kPuts = 200;
    Longs window(2 * kPuts);
    if (g_rank == 0) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
    timed(name, {kPuts, kPuts}, [&](long turn) {
        if (g_rank != 0) return;
        for (int i = 0; i < kPuts; ++i)
            MPI_Put(&turn, 1, MPI_LONG, 1, 2 * i, 1, MPI_LONG, window.win);
        MPI_Win_flush(1, window.win);
    });
    if (g_rank == 0) MPI_Win_unlock(1, window.win);
}

void host_way(const std::string& name) {
    timed(name, {2, 2}, [&](long turn) {
        long word = turn;
        if (g_rank == 0) MPI_Send(&word, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
        if (g_rank < 2) MPI_Recv(&word, 1, MPI_LONG, 1 - g_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (g_rank == 1) MPI_Send(&word, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
        check(word == turn);
    });
}

// The host call by which libosc makes its own communicator.
void host_create(const std::string& name) {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    timed(name, {1, 1}, [&](long) {
        MPI_Comm own = MPI_COMM_NULL;
        MPI_Comm_create(MPI_COMM_WORLD, all, &own);
        MPI_Comm_free(&own);
    });
    MPI_Group_free(&all);
}

MPI_Group group_of(int first, int step, int count) {
    std::vector<int> ranks;
    for (int i = 0; i < count; ++i)
        ranks.push_back(across(first + i * step));
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, ranks.data(), &some);
    MPI_Group_free(&all);
    return some;
}

// Epochs alternate between two words: a process that has left a fence may put again while its neighbour checks.
void fence(const std::string& name) {
    Longs window(2);
    const bool puts = name == "fence_put";
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
    timed(name, {1, static_cast<double>(g_ranks)}, [&](long turn) {
        if (puts) MPI_Put(&turn, 1, MPI_LONG, across(1), turn % 2, 1, MPI_LONG, window.win);
        MPI_Win_fence(0, window.win);
        if (puts) check(window.memory[turn % 2] == turn);
    });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
}

void pscw(const std::string& name, int neighbours) {
    Longs window(g_ranks);
    MPI_Group origins = group_of(-1, -1, neighbours);
    MPI_Group targets = group_of(1, 1, neighbours);
    timed(name, {1, static_cast<double>(g_ranks)}, [&](long turn) {
        MPI_Win_post(origins, 0, window.win);
        MPI_Win_start(targets, 0, window.win);
        for (int i = 1; i <= neighbours; ++i)
            MPI_Put(&turn, 1, MPI_LONG, across(i), g_rank, 1, MPI_LONG, window.win);
        MPI_Win_complete(window.win);
        MPI_Win_wait(window.win);
        for (int i = 1; i <= neighbours; ++i)
            check(window.memory[across(-i)] == turn);
    });
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
}

void lock_all(const std::string& name, int neighbours) {
    Longs window(g_ranks);
    const auto once = [&](long turn) {
        MPI_Win_lock_all(0, window.win);
        for (int i = 1; i <= neighbours; ++i)
            MPI_Put(&turn, 1, MPI_LONG, across(i), g_rank, 1, MPI_LONG, window.win);
        MPI_Win_unlock_all(window.win);
    };
    timed(name, {1, static_cast<double>(g_ranks)}, once, [&](long turns) {
        MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, window.win);
        for (int i = 1; i <= neighbours; ++i)
            check(window.memory[across(-i)] == turns);
        MPI_Win_unlock(g_rank, window.win);
    });
}

// All but rank 0 want its lock all the time; a get that has to be there before the put makes them hold it for a round
// trip. The word counts the acquisitions.
void contended_lock(const std::string& name) {
    Longs window(1);
    const auto once = [&](long) {
        if (g_rank == 0) return;
        long word = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
        MPI_Get(&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win);
        MPI_Win_flush(0, window.win);
        ++word;
        MPI_Put(&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win);
        MPI_Win_unlock(0, window.win);
    };
    timed(name, {g_ranks - 1.0, g_ranks - 1.0}, once, [&](long turns) {
        MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, window.win);
        if (g_rank == 0) check(*window.memory == turns * (g_ranks - 1));
        MPI_Win_unlock(g_rank, window.win);
    });
}

// Windows are kept until the clock has stopped: freeing them is another thing.
void create(const std::string& name, MPI_Comm comm, const std::function<MPI_Comm()>& next) {
    std::vector<MPI_Win> windows;
    void* memory = nullptr;
    double spent = 0;
    for (int i = 0; i <= g_repeats; ++i) {
        MPI_Comm of = next ? next() : comm;
        const double begin = bench::now_ns();
        windows.push_back(MPI_WIN_NULL);
        MPI_Win_allocate(8, 8, MPI_INFO_NULL, of, static_cast<void*>(&memory), &windows.back());
        if (i > 0) spent += bench::now_ns() - begin;
        if (next) MPI_Comm_free(&of);
    }
    for (MPI_Win& window : windows)
        MPI_Win_free(&window);
    double longest = 0;
    MPI_Allreduce(&spent, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (g_rank == 0)
        std::printf("{\"scenario\": \"%s\", \"processes\": %d, \"ns\": %.1f, \"messages\": 0, \"valid\": true}\n",
                    name.c_str(), g_ranks, longest / g_repeats);
    std::fflush(stdout);
}

MPI_Comm duplicate() {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comm;
}

struct Scenario {
    const char* name;
    int ranks;  // that it needs
    void (*run)(const std::string& name);
};

const Scenario kScenarios[] = {
    {"way", 2, [](const std::string& name) { way(name, 1); }},
    {"way.4096", 2, [](const std::string& name) { way(name, 4096 / sizeof(long)); }},
    {"gap", 2, gap},
    {"host_way", 2, host_way},
    {"host_create", 2, host_create},
    {"own_window", 2, [](const std::string& name) { create(name, MPI_COMM_SELF, {}); }},
    {"fence", 2, fence},
    {"fence_put", 2, fence},
    {"pscw", 2, [](const std::string& name) { pscw(name, 1); }},
    {"pscw.3", 4, [](const std::string& name) { pscw(name, 3); }},
    {"lock_all", 2, [](const std::string& name) { lock_all(name, 1); }},
    {"lock_all.3", 4, [](const std::string& name) { lock_all(name, 3); }},
    {"contended_lock", 2, contended_lock},
    {"window", 2, [](const std::string& name) { create(name, MPI_COMM_WORLD, {}); }},
    {"first_window", 2, [](const std::string& name) { create(name, MPI_COMM_WORLD, duplicate); }},
};

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> wanted;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--list") == 0) {
            for (const Scenario& scenario : kScenarios)
                std::printf("%s\n", scenario.name);
            return 0;
        }
        if (std::strcmp(argv[i], "--repeats") == 0 && i + 1 < argc)
            g_repeats = std::max(1, std::atoi(argv[++i]));
        else
            wanted.emplace_back(argv[i]);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    for (const Scenario& scenario : kScenarios) {
        const bool chosen = wanted.empty() || std::find(wanted.begin(), wanted.end(), scenario.name) != wanted.end();
        if (chosen && g_ranks >= scenario.ranks) scenario.run(scenario.name);
    }
    bench::limit_finalize();
    MPI_Finalize();
    return 0;
}
