// A work queue: tasks of very different length, rows of a picture of the Mandelbrot set. One-sided: the queue is a
// counter in rank 0's window, and a rank takes its next rows with one MPI_Fetch_and_op and puts the results where they
// belong; rank 0 computes like all others. With --messages: rank 0 does nothing but hand out rows and collect results.
#include "example.h"

using example::Options;
using example::Session;

namespace {

struct Settings {
    long rows = 240;
    long columns = 160;
    long depth = 1000;
    long chunk = 4;
    bool messages = false;
};

// How many iterations the points of a row take together.
std::int64_t iterations_of(const Settings& set, long row) {
    std::int64_t sum = 0;
    const double ci = -1.25 + 2.5 * static_cast<double>(row) / static_cast<double>(set.rows);
    for (long column = 0; column < set.columns; ++column) {
        const double cr = -2.0 + 2.5 * static_cast<double>(column) / static_cast<double>(set.columns);
        double zr = 0;
        double zi = 0;
        for (long i = 0; i < set.depth && zr * zr + zi * zi < 4; ++i) {
            const double next = zr * zr - zi * zi + cr;
            zi = 2 * zr * zi + ci;
            zr = next;
            ++sum;
        }
    }
    return sum;
}

long end_of(const Settings& set, long first) {
    return std::min(set.rows, first + set.chunk);
}

// `table`, rank 0's window: the next row that no rank has taken, a word to spare, then the rows' results.
constexpr MPI_Aint kNext = 0;
constexpr MPI_Aint kResults = 2;

// Returns how many rows this rank has computed.
long by_fetch_and_op(const Session& session, const Settings& set, MPI_Win win) {
    example::Progress progress(session, "rows", set.rows);
    const std::int64_t chunk = set.chunk;
    std::vector<std::int64_t> results(static_cast<std::size_t>(chunk));
    long done = 0;
    MPI_Win_lock_all(0, win);
    for (;;) {
        std::int64_t first = 0;
        MPI_Fetch_and_op(&chunk, &first, MPI_INT64_T, 0, kNext, MPI_SUM, win);
        MPI_Win_flush(0, win);  // the last results have left their buffer then, too
        if (first >= set.rows) break;
        const long end = end_of(set, first);
        for (long row = first; row < end; ++row)
            results[static_cast<std::size_t>(row - first)] = iterations_of(set, row);
        const int count = static_cast<int>(end - first);
        MPI_Put(results.data(), count, MPI_INT64_T, 0, kResults + first, count, MPI_INT64_T, win);
        done += count;
        progress.at(first);
    }
    MPI_Win_unlock_all(win);
    return done;
}

constexpr int kAsk = 0;
constexpr int kResult = 1;

// Rank 0: answers with the first row of a chunk, or `rows` when there is none, until every rank has got that.
void hand_out(const Session& session, const Settings& set, std::int64_t* results) {
    example::Progress progress(session, "rows", set.rows);
    std::vector<std::int64_t> message(static_cast<std::size_t>(set.chunk) + 1);
    std::int64_t next = 0;
    for (int working = session.ranks - 1; working > 0;) {
        MPI_Status status;
        MPI_Recv(message.data(), static_cast<int>(message.size()), MPI_INT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG,
                 MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == kResult) {
            int count = 0;
            MPI_Get_count(&status, MPI_INT64_T, &count);
            std::copy(message.begin() + 1, message.begin() + count, results + message[0]);
        }
        const std::int64_t first = std::min<std::int64_t>(next, set.rows);
        MPI_Send(&first, 1, MPI_INT64_T, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
        if (first == set.rows) --working;
        next = first + set.chunk;
        progress.at(first);
    }
}

long by_messages(const Session& session, const Settings& set, std::int64_t* results) {
    long done = 0;
    if (session.first() && session.ranks == 1) {
        for (; done < set.rows; ++done)
            results[done] = iterations_of(set, done);
    } else if (session.first()) {
        hand_out(session, set, results);
    } else {
        std::vector<std::int64_t> message(1);
        MPI_Send(message.data(), 0, MPI_INT64_T, 0, kAsk, MPI_COMM_WORLD);
        for (;;) {
            std::int64_t first = 0;
            MPI_Recv(&first, 1, MPI_INT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (first == set.rows) break;
            message.assign(1, first);
            for (long row = first; row < end_of(set, first); ++row)
                message.push_back(iterations_of(set, row));
            done += static_cast<long>(message.size()) - 1;
            MPI_Send(message.data(), static_cast<int>(message.size()), MPI_INT64_T, 0, kResult, MPI_COMM_WORLD);
        }
    }
    return done;
}

bool check(const Settings& set, const std::int64_t* results) {
    for (long row = 0; row < set.rows; ++row) {
        if (results[row] != iterations_of(set, row)) return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("a work queue behind a fetch_and_op");
    options.number("rows", set.rows, 1, 1000000, "rows of the picture, one task each");
    options.number("columns", set.columns, 1, 1000000, "points of a row");
    options.number("depth", set.depth, 1, 1000000000, "iterations of a point at most");
    options.number("chunk", set.chunk, 1, 1000000, "rows taken at once");
    options.flag("messages", set.messages, "the message-passing twin: rank 0 hands out the rows");
    const int status = options.parse(argc, argv, session);
    if (status != Options::kGoOn) return status;

    std::int64_t* table = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    const MPI_Aint words = session.first() ? kResults + set.rows : 0;
    MPI_Win_allocate(words * static_cast<MPI_Aint>(sizeof(std::int64_t)), sizeof(std::int64_t), MPI_INFO_NULL,
                     MPI_COMM_WORLD, static_cast<void*>(&table), &win);
    if (session.first()) {
        const example::OwnMemory own(session, win);
        std::fill(table, table + words, 0);
    }
    const double begin = Session::start_together();
    const long done = set.messages ? by_messages(session, set, session.first() ? table + kResults : nullptr)
                                   : by_fetch_and_op(session, set, win);
    const double took = Session::start_together() - begin;

    bool right = session.sum(static_cast<std::int64_t>(done)) == set.rows;
    if (session.first()) {
        const example::OwnMemory own(session, win);
        right = right && check(set, table + kResults);
    }
    const std::int64_t most = session.most(done);
    right = session.all(right);
    if (session.first()) {
        std::printf("workqueue ranks=%d mode=%s rows=%ld most_of_one_rank=%lld seconds=%.4f verified=%s\n",
                    session.ranks, set.messages ? "messages" : "fetch_and_op", set.rows, static_cast<long long>(most),
                    took, example::yes(right));
    }
    MPI_Win_free(&win);
    return right ? example::kRight : example::kWrong;
}
