// RandomAccess (GUPS): every rank updates random words of a table that is spread over all ranks, T[r & mask] ^= r, and
// never waits for the owner. One-sided: one MPI_Accumulate of MPI_BXOR per update in one lock_all epoch. With
// --messages: updates are collected by owner and exchanged, as the benchmark's own message-passing program does. Both
// keep at most --lookahead updates per rank under way, which HPC Challenge limits to 1024.
#include "example.h"

using example::Bundles;
using example::mix;
using example::Options;
using example::Progress;
using example::Session;

namespace {

struct Settings {
    long table = 16;
    long updates = 4;
    long lookahead = 1024;
    bool messages = false;
    bool unchecked = false;
};

struct Table {
    std::uint64_t* words = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    std::uint64_t per_rank = 0;
    std::uint64_t ranks = 1;

    int owner(std::uint64_t random) const { return static_cast<int>((random >> 40) % ranks); }
    std::uint64_t index(std::uint64_t random) const { return random & (per_rank - 1); }
};

std::uint64_t update(int rank, std::int64_t i) {
    return mix((static_cast<std::uint64_t>(rank) << 40) + static_cast<std::uint64_t>(i));
}

void by_accumulate(const Session& session, const Settings& set, const Table& table, std::int64_t updates) {
    // An operand must last until its operation is complete at the origin.
    std::vector<std::uint64_t> operands(static_cast<std::size_t>(set.lookahead));
    Progress progress(session, "updates", updates);
    MPI_Win_lock_all(0, table.win);
    for (std::int64_t done = 0; done < updates; done += set.lookahead) {
        const std::int64_t end = std::min<std::int64_t>(set.lookahead, updates - done);
        for (std::int64_t i = 0; i < end; ++i) {
            std::uint64_t& operand = operands[static_cast<std::size_t>(i)];
            operand = update(session.rank, done + i);
            MPI_Accumulate(&operand, 1, MPI_UINT64_T, table.owner(operand), static_cast<MPI_Aint>(table.index(operand)),
                           1, MPI_UINT64_T, MPI_BXOR, table.win);
        }
        MPI_Win_flush_local_all(table.win);
        progress.at(done);
    }
    MPI_Win_unlock_all(table.win);
}

void by_messages(const Session& session, const Settings& set, const Table& table, std::int64_t updates) {
    Bundles<std::uint64_t> bundles(session.ranks);
    Progress progress(session, "updates", updates);
    for (std::int64_t done = 0; done < updates; done += set.lookahead) {
        const std::int64_t end = std::min<std::int64_t>(set.lookahead, updates - done);
        for (std::int64_t i = 0; i < end; ++i) {
            const std::uint64_t random = update(session.rank, done + i);
            bundles.add(table.owner(random), random);
        }
        for (const std::uint64_t random : bundles.exchange())
            table.words[table.index(random)] ^= random;
        progress.at(done);
    }
}

// Every rank repeats all ranks' updates of its own part.
bool check(const Session& session, const Table& table, std::int64_t updates) {
    std::vector<std::uint64_t> right(table.per_rank);
    for (std::uint64_t i = 0; i < table.per_rank; ++i)
        right[i] = i;
    for (int rank = 0; rank < session.ranks; ++rank) {
        for (std::int64_t i = 0; i < updates; ++i) {
            const std::uint64_t random = update(rank, i);
            if (table.owner(random) == session.rank) right[table.index(random)] ^= random;
        }
    }
    const example::OwnMemory own(session, table.win);
    return std::equal(right.begin(), right.end(), table.words);
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("RandomAccess: xor of random words of a distributed table");
    options.number("table", set.table, 0, 34, "log2 of the table's words per rank");
    options.number("updates", set.updates, 1, 1000, "updates per word of the table");
    options.number("lookahead", set.lookahead, 1, 1L << 30, "updates under way per rank");
    options.flag("messages", set.messages, "the message-passing twin");
    options.flag("unchecked", set.unchecked, "without the sequential check");
    const int status = options.parse(argc, argv, session);
    if (status != Options::kGoOn) return status;

    Table table;
    table.ranks = static_cast<std::uint64_t>(session.ranks);
    table.per_rank = std::uint64_t{1} << set.table;
    MPI_Win_allocate(static_cast<MPI_Aint>(table.per_rank * sizeof(std::uint64_t)), sizeof(std::uint64_t),
                     MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&table.words), &table.win);
    {
        const example::OwnMemory own(session, table.win);
        for (std::uint64_t i = 0; i < table.per_rank; ++i)
            table.words[i] = i;
    }
    const auto updates = static_cast<std::int64_t>(table.per_rank) * set.updates;

    const double begin = Session::start_together();
    (set.messages ? by_messages : by_accumulate)(session, set, table, updates);
    const double took = Session::start_together() - begin;

    const bool right = set.unchecked || session.all(check(session, table, updates));
    if (session.first()) {
        const double all = static_cast<double>(updates) * session.ranks;
        std::printf("gups ranks=%d mode=%s updates=%.0f seconds=%.4f mups=%.3f verified=%s\n", session.ranks,
                    set.messages ? "messages" : "accumulate", all, took, all / took * 1e-6,
                    set.unchecked ? "skipped" : example::yes(right));
    }
    MPI_Win_free(&table.win);
    return right ? example::kRight : example::kWrong;
}
