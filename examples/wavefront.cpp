// Longest common subsequence of two texts, as a pipeline: the columns of the table are dealt out over the ranks, and
// its rows flow through them in blocks. A rank puts the last column of each block into its right neighbour and notifies
// the block's counter there; the neighbour waits for that counter alone. With --messages: the same by messages. Over an
// MPI library without libosc the notified puts are those of osc/notify_fallback.h.
#include <osc/notify_fallback.h>

#include "example.h"

using example::Options;
using example::Session;

namespace {

struct Settings {
    long rows = 4000;
    long columns = 4000;
    long block = 64;
    long seed = 1;
    bool messages = false;
};

int letter(const Settings& set, std::uint64_t text, long at) {
    const std::uint64_t start = 2 * static_cast<std::uint64_t>(set.seed) + text;
    return static_cast<int>(example::mix(example::mix(start) + static_cast<std::uint64_t>(at)) % 4);
}

// A row of the table, from the columns [first, last); element 0 is the column before them.
class Row {
  public:
    Row(const Settings& set, long first, long last) : set_(set), cells_(static_cast<std::size_t>(last - first) + 1) {
        for (long at = first; at < last; ++at)
            text_.push_back(letter(set, 1, at));
    }
    // Becomes row `at`; `left` is the new element 0.
    void next(long at, int left) {
        const int mine = letter(set_, 0, at);
        int diagonal = cells_[0];
        cells_[0] = left;
        for (std::size_t i = 0; i < text_.size(); ++i) {
            const int above = cells_[i + 1];
            cells_[i + 1] = mine == text_[i] ? diagonal + 1 : std::max(above, cells_[i]);
            diagonal = above;
        }
    }
    int last() const { return cells_.back(); }

  private:
    const Settings& set_;
    std::vector<int> cells_;
    std::vector<int> text_;
};

// The column before a rank's own, which its left neighbour fills.
class Pipe {
  public:
    Pipe(const Session& session, const Settings& set)
        : set_(set),
          left_(session.first() ? MPI_PROC_NULL : session.rank - 1),
          right_(session.last() ? MPI_PROC_NULL : session.rank + 1) {
        MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(int)) * set.rows, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                         static_cast<void*>(&column_), &win_);
        std::fill(column_, column_ + set.rows, 0);
        const long blocks = (set.rows + set.block - 1) / set.block;
        OSC_Win_set_num_notify(win_, MPI_INFO_NULL, static_cast<int>(blocks));
        MPI_Win_lock_all(0, win_);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        MPI_Win_unlock_all(win_);
        MPI_Win_free(&win_);
    }

    // The column's rows of a block, when they are there.
    const int* receive(long block) {
        if (left_ != MPI_PROC_NULL && set_.messages)
            MPI_Recv(column_ + first(block), count(block), MPI_INT, left_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (left_ != MPI_PROC_NULL)
            OSC_Win_wait_notify(win_, static_cast<int>(block), 1, nullptr);
        return column_ + first(block);
    }
    // `last_column` stays as it is until the end.
    void send(long block, const int* last_column) {
        if (set_.messages)
            MPI_Send(last_column, count(block), MPI_INT, right_, 0, MPI_COMM_WORLD);
        else
            OSC_Put_notify(last_column, count(block), MPI_INT, right_, first(block), count(block), MPI_INT,
                           static_cast<int>(block), win_);
    }
    long first(long block) const { return block * set_.block; }
    int count(long block) const { return static_cast<int>(std::min(set_.block, set_.rows - first(block))); }

  private:
    const Settings& set_;
    const int left_;
    const int right_;
    int* column_ = nullptr;
    MPI_Win win_ = MPI_WIN_NULL;
};

// The last column of this rank's part.
std::vector<int> compute(const Session& session, const Settings& set, double& took) {
    Row row(set, set.columns * session.rank / session.ranks, set.columns * (session.rank + 1) / session.ranks);
    std::vector<int> last_column(static_cast<std::size_t>(set.rows));
    Pipe pipe(session, set);
    example::Progress progress(session, "rows", set.rows);
    const double begin = Session::start_together();
    for (long block = 0; pipe.first(block) < set.rows; ++block) {
        const int* left = pipe.receive(block);
        const long first = pipe.first(block);
        for (long at = first; at < first + pipe.count(block); ++at) {
            row.next(at, left[at - first]);
            last_column[static_cast<std::size_t>(at)] = row.last();
        }
        pipe.send(block, last_column.data() + first);
        progress.at(first);
    }
    took = Session::start_together() - begin;
    return last_column;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("longest common subsequence, by rows that flow through the ranks");
    options.number("rows", set.rows, 1, 1L << 24, "letters of one text");
    options.number("columns", set.columns, 1, 1L << 24, "letters of the other");
    options.number("block", set.block, 1, 1L << 24, "rows that go on together");
    options.number("seed", set.seed, 0, 1L << 30, "of the texts");
    options.flag("messages", set.messages, "the message-passing twin");
    if (const int status = options.parse(argc, argv, session); status != Options::kGoOn) return status;

    double took = 0;
    int found = compute(session, set, took).back();
    MPI_Bcast(&found, 1, MPI_INT, session.ranks - 1, MPI_COMM_WORLD);
    bool right = true;
    if (session.first()) {
        Row row(set, 0, set.columns);
        for (long at = 0; at < set.rows; ++at)
            row.next(at, 0);
        right = row.last() == found;
        std::printf("wavefront ranks=%d exchange=%s letters=%ldx%ld block=%ld seconds=%.4f length=%d verified=%s\n",
                    session.ranks, set.messages ? "messages" : "notify", set.rows, set.columns, set.block, took, found,
                    example::yes(right));
    }
    return session.all(right) ? example::kRight : example::kWrong;
}
