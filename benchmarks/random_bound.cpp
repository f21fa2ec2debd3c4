// Random updates of a table that is spread over the ranks of one node: what one by one costs on plain shared memory,
// and what of it MPI's one-sided operations add.
//   random_bound [ROUNDS]
// The patterns are those of examples/gups (xor), pagerank --mode push (sum of doubles) and components (swap), with
// their sizes at --table 20 and --scale 18 on 2 ranks. Ways to do them:
//   atomics   each update is an atomic instruction, or a loop of one, on the word in shared memory
//   stripesN  each update is an ordinary one under one of the N lock words of its rank; libosc has 16
//   calls     MPI_Accumulate or MPI_Compare_and_swap
//   bundles   updates of other ranks' words are collected and exchanged through shared memory; owners apply them
//   messages  the same with MPI_Alltoallv
// Rank 0 prints a line of JSON for each: the median and the quartiles of the rounds, which take all ways in turns, in
// updates a second of all ranks. Exit status 1: a table is wrong afterwards.
#include "random_bound.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace random_bound;

// ---- one by one
// ------------------------------------------------------------------------------------------------------

template <class Kind>
void by_atomics(const Table& table, const std::vector<Update>& updates) {
    for (const Update& u : updates)
        Kind::atomically(table.word(u), u.value);
}

template <class Kind, std::size_t kStripes>
void by_stripes(const Table& table, const std::vector<Update>& updates) {
    for (const Update& u : updates) {
        std::atomic<std::uint32_t>& stripe = table.stripe(u, kStripes);
        std::uint32_t free = 0;
        while (!stripe.compare_exchange_weak(free, 1, std::memory_order_acquire, std::memory_order_relaxed))
            free = 0;
        Kind::apply(*table.word(u), u.value);
        stripe.store(0, std::memory_order_release);
    }
}

template <class Kind>
void by_calls(const Table& table, const std::vector<Update>& updates) {
    std::vector<std::uint64_t> results(kBundle);
    const std::uint64_t none = 0;
    if (Kind::kFenced)
        MPI_Win_fence(MPI_MODE_NOPRECEDE, table.win);
    else
        MPI_Win_lock_all(0, table.win);
    for (std::size_t i = 0; i < updates.size(); ++i) {
        const Update& u = updates[i];
        if constexpr (Kind::kSwaps)
            MPI_Compare_and_swap(&u.value, &none, &results[i % kBundle], MPI_UINT64_T, u.owner, u.index, table.win);
        else
            MPI_Accumulate(&u.value, 1, Kind::type(), u.owner, u.index, 1, Kind::type(), Kind::op(), table.win);
        if (!Kind::kFenced && (i + 1) % kBundle == 0) MPI_Win_flush_all(table.win);
    }
    if (Kind::kFenced)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, table.win);
    else
        MPI_Win_unlock_all(table.win);
}

// ---- in bundles
// ------------------------------------------------------------------------------------------------------

// Applies updates of own words at once, collects the others, and calls exchange() for each bundle. All ranks have
// equally many updates, so they exchange equally often.
template <class Kind, class Exchange>
void collect(const Table& table, const std::vector<Update>& updates, std::vector<std::vector<Item>>& to,
             Exchange&& exchange) {
    const std::size_t bundle = Kind::kFenced ? updates.size() : kBundle;
    for (std::size_t i = 0; i < updates.size(); ++i) {
        const Update& u = updates[i];
        if (u.owner == table.rank)
            Kind::apply(*table.word(u), u.value);
        else
            to[static_cast<std::size_t>(u.owner)].push_back({u.index, u.value});
        if ((i + 1) % bundle != 0) continue;
        exchange();
        for (std::vector<Item>& items : to)
            items.clear();
    }
}

template <class Kind>
void by_bundles(const Table& table, const std::vector<Update>& updates) {
    std::vector<std::vector<Item>> to(static_cast<std::size_t>(table.ranks));
    collect<Kind>(table, updates, to, [&] {
        for (int r = 0; r < table.ranks; ++r) {
            const std::vector<Item>& items = to[static_cast<std::size_t>(r)];
            *table.sent(table.rank, r) = items.size();
            std::copy(items.begin(), items.end(), table.box(table.rank, r));
        }
        table.meet();
        for (int r = 0; r < table.ranks; ++r) {
            const Item* const items = table.box(r, table.rank);
            for (std::size_t i = 0, count = *table.sent(r, table.rank); i < count; ++i)
                Kind::apply(table.words(table.rank)[items[i].index], items[i].value);
        }
        table.meet();
    });
}

template <class Kind>
void by_messages(const Table& table, const std::vector<Update>& updates) {
    const auto ranks = static_cast<std::size_t>(table.ranks);
    std::vector<std::vector<Item>> to(ranks);
    std::vector<Item> outgoing;
    std::vector<Item> incoming;
    std::vector<int> send(ranks), send_at(ranks), receive(ranks), receive_at(ranks);
    collect<Kind>(table, updates, to, [&] {
        outgoing.clear();
        for (std::size_t r = 0; r < ranks; ++r) {
            send_at[r] = static_cast<int>(outgoing.size() * sizeof(Item));
            send[r] = static_cast<int>(to[r].size() * sizeof(Item));
            outgoing.insert(outgoing.end(), to[r].begin(), to[r].end());
        }
        MPI_Alltoall(send.data(), 1, MPI_INT, receive.data(), 1, MPI_INT, MPI_COMM_WORLD);
        for (std::size_t r = 1; r < ranks; ++r)
            receive_at[r] = receive_at[r - 1] + receive[r - 1];
        incoming.resize(static_cast<std::size_t>(receive_at.back() + receive.back()) / sizeof(Item));
        MPI_Alltoallv(outgoing.data(), send.data(), send_at.data(), MPI_BYTE, incoming.data(), receive.data(),
                      receive_at.data(), MPI_BYTE, MPI_COMM_WORLD);
        for (const Item& item : incoming)
            Kind::apply(table.words(table.rank)[item.index], item.value);
    });
}

// ---- the measurement
// -------------------------------------------------------------------------------------------------

struct Way {
    const char* name;
    void (*run)(const Table&, const std::vector<Update>&);
};

template <class Kind>
bool measure(int rounds) {
    constexpr std::array<Way, 7> kWays = {{{"atomics", by_atomics<Kind>},
                                           {"stripes16", by_stripes<Kind, 16>},
                                           {"stripes64", by_stripes<Kind, 64>},
                                           {"stripes256", by_stripes<Kind, kMostStripes>},
                                           {"calls", by_calls<Kind>},
                                           {"bundles", by_bundles<Kind>},
                                           {"messages", by_messages<Kind>}}};
    const std::size_t words = std::size_t{1} << Kind::kBits;
    Table table(words, words * Kind::kPerWord);
    const std::vector<Update> updates = make_updates<Kind>(table, words * Kind::kPerWord);
    std::array<std::vector<double>, kWays.size()> rates;
    bool right = true;
    for (int round = 0; round < rounds; ++round)
        for (std::size_t w = 0; w < kWays.size(); ++w) {
            const bool in_window = kWays[w].run == &by_calls<Kind>;
            table.clear(in_window);
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = MPI_Wtime();
            kWays[w].run(table, updates);
            MPI_Barrier(MPI_COMM_WORLD);
            const double took = MPI_Wtime() - begin;
            rates[w].push_back(static_cast<double>(updates.size()) * table.ranks / took);
            right = Kind::is_right(table, in_window, updates) && right;
        }
    for (std::size_t w = 0; table.rank == 0 && w < kWays.size(); ++w) {
        std::vector<double>& sorted = rates[w];
        std::sort(sorted.begin(), sorted.end());
        const std::size_t n = sorted.size();
        std::printf("{\"pattern\": \"%s\", \"way\": \"%s\", \"median\": %.0f, \"q1\": %.0f, \"q3\": %.0f}\n",
                    Kind::kName, kWays[w].name, sorted[n / 2], sorted[n / 4], sorted[n - 1 - n / 4]);
        std::fflush(stdout);
    }
    if (!right && table.rank == 0) std::fprintf(stderr, "random_bound: %s: wrong table\n", Kind::kName);
    return right;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
    if (rounds < 1) {
        std::fprintf(stderr, "random_bound: ROUNDS must be 1 or more\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bool right = measure<Xor>(rounds);
    right = measure<Sum>(rounds) && right;
    right = measure<Swap>(rounds) && right;
    MPI_Finalize();
    return right ? 0 : 1;
}
