// Cholesky factorisation by tiles, as a graph of tasks without a scheduler or a barrier: the task of tile (i, j)
// computes L(i, j), and its inputs are the L(i, k) and L(j, k) with k < j, and L(j, j). Each task has a slot for each
// input, and a counter. A task that ends puts its tile into the slots of the tasks that need it, on whatever rank, and
// notifies their counters; a task runs when its counter has reached the number of its inputs. Over an MPI library
// without libosc the notified puts are those of osc/notify_fallback.h. With --messages: a message for each input, whose
// receive is posted at the start with the slot as its buffer; a task runs when all of its receives are complete.
#include <osc/notify_fallback.h>

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "example.h"

using example::Options;
using example::Session;

namespace {

struct Settings {
    long tiles = 8;
    long size = 24;
    bool messages = false;
};

using Tile = std::vector<double>;  // `size` rows of `size` elements

// An element of a matrix that is symmetric and, by its diagonal, positive definite.
double element(const Settings& set, long row, long column) {
    const long low = std::min(row, column);
    const long high = std::max(row, column);
    const std::uint64_t random = example::mix(static_cast<std::uint64_t>(high * (high + 1) / 2 + low)) >> 11;
    const double off = static_cast<double>(random) * 0x1p-53;
    return row == column ? static_cast<double>(set.tiles * set.size) + off : off;
}

// to -= a * transposed b
void subtract_product(long n, double* to, const double* a, const double* b) {
    for (long i = 0; i < n; ++i)
        for (long j = 0; j < n; ++j)
            for (long k = 0; k < n; ++k)
                to[i * n + j] -= a[i * n + k] * b[j * n + k];
}
// Of a tile on the diagonal.
void factorise(long n, double* a) {
    for (long j = 0; j < n; ++j) {
        for (long i = j; i < n; ++i) {
            for (long k = 0; k < j; ++k)
                a[i * n + j] -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? std::sqrt(a[j * n + j]) : a[i * n + j] / a[j * n + j];
        }
        std::fill(a + j * n + j + 1, a + (j + 1) * n, 0.0);
    }
}
// a becomes x with x * transposed l = a.
void solve(long n, double* a, const double* l) {
    for (long i = 0; i < n; ++i)
        for (long j = 0; j < n; ++j) {
            for (long k = 0; k < j; ++k)
                a[i * n + j] -= a[i * n + k] * l[j * n + k];
            a[i * n + j] /= l[j * n + j];
        }
}

struct Task {
    long row, column;
    // L(row, k) and L(column, k) for each k < column, which are one tile on the diagonal; then L(column, column).
    long inputs() const { return row == column ? column : 2 * column + 1; }
};

// Where a task runs, its counter there, and the first of its slots.
struct Place {
    int rank;
    long counter;
    long slots;
};

// How tiles come into the slots of this rank's tasks.
class Exchange {
  public:
    virtual ~Exchange() = default;
    virtual const double* slots() const = 0;
    // Moves a tile, which stays unchanged until the end, into one of the slots of a task.
    virtual void give(const Tile& tile, const Place& to, long input) = 0;
    virtual bool is_ready(const Place& place, long inputs) = 0;
    virtual void await(const Place& place, long inputs) = 0;
};

class Notifications final : public Exchange {
  public:
    Notifications(long slots, long counters, MPI_Aint bytes) {
        MPI_Win_allocate(slots * bytes, static_cast<int>(bytes), MPI_INFO_NULL, MPI_COMM_WORLD,
                         static_cast<void*>(&slots_), &win_);
        OSC_Win_set_num_notify(win_, MPI_INFO_NULL, static_cast<int>(counters));
        MPI_Win_lock_all(0, win_);
    }
    Notifications(const Notifications&) = delete;
    Notifications& operator=(const Notifications&) = delete;
    ~Notifications() override {
        MPI_Win_unlock_all(win_);
        MPI_Win_free(&win_);
    }

    const double* slots() const override { return slots_; }
    void give(const Tile& tile, const Place& to, long input) override {
        const int count = static_cast<int>(tile.size());
        OSC_Put_notify(tile.data(), count, MPI_DOUBLE, to.rank, to.slots + input, count, MPI_DOUBLE,
                       static_cast<int>(to.counter), win_);
    }
    bool is_ready(const Place& place, long inputs) override {
        int flag = 0;
        OSC_Win_test_notify(win_, static_cast<int>(place.counter), inputs, &flag, nullptr);
        return flag != 0;
    }
    void await(const Place& place, long inputs) override {
        OSC_Win_wait_notify(win_, static_cast<int>(place.counter), inputs, nullptr);
    }

  private:
    double* slots_ = nullptr;
    MPI_Win win_ = MPI_WIN_NULL;
};

// The tag of a message is the number of its slot.
class Messages final : public Exchange {
  public:
    Messages(long slots, long elements)
        : slots_(static_cast<std::size_t>(slots * elements)), receives_(static_cast<std::size_t>(slots)) {
        for (long slot = 0; slot < slots; ++slot)
            MPI_Irecv(slots_.data() + slot * elements, static_cast<int>(elements), MPI_DOUBLE, MPI_ANY_SOURCE,
                      static_cast<int>(slot), MPI_COMM_WORLD, &receives_[static_cast<std::size_t>(slot)]);
    }
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;
    ~Messages() override { MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE); }

    const double* slots() const override { return slots_.data(); }
    void give(const Tile& tile, const Place& to, long input) override {
        sends_.push_back(MPI_REQUEST_NULL);
        MPI_Isend(tile.data(), static_cast<int>(tile.size()), MPI_DOUBLE, to.rank, static_cast<int>(to.slots + input),
                  MPI_COMM_WORLD, &sends_.back());
    }
    bool is_ready(const Place& place, long inputs) override {
        int flag = 0;
        MPI_Testall(static_cast<int>(inputs), receives_.data() + place.slots, &flag, MPI_STATUSES_IGNORE);
        return flag != 0;
    }
    void await(const Place& place, long inputs) override {
        MPI_Waitall(static_cast<int>(inputs), receives_.data() + place.slots, MPI_STATUSES_IGNORE);
    }

  private:
    std::vector<double> slots_;
    std::vector<MPI_Request> receives_;
    std::vector<MPI_Request> sends_;
};

class Graph {
  public:
    Graph(const Session& session, const Settings& set) : set_(set) {
        std::vector<long> counters(static_cast<std::size_t>(session.ranks));
        std::vector<long> slots(counters);
        for (long column = 0; column < set.tiles; ++column)  // every task behind its inputs
            for (long row = column; row < set.tiles; ++row) {
                const auto owner = static_cast<std::size_t>((row + column * 3) % session.ranks);
                const Task task{row, column};
                places_[{row, column}] = {static_cast<int>(owner), counters[owner]++, slots[owner]};
                slots[owner] += task.inputs();
                if (static_cast<int>(owner) == session.rank) waiting_.push_back(task);
            }
        const auto me = static_cast<std::size_t>(session.rank);
        const long elements = set.size * set.size;
        if (set.messages)
            exchange_ = std::make_unique<Messages>(slots[me], elements);
        else
            exchange_ = std::make_unique<Notifications>(slots[me], counters[me],
                                                        static_cast<MPI_Aint>(sizeof(double)) * elements);
    }

    // Runs this rank's tasks, each as soon as it is ready; returns how many overtook another.
    long run() {
        long overtook = 0;
        while (!waiting_.empty()) {
            std::size_t next = 0;
            while (next < waiting_.size() && !is_ready(waiting_[next]))
                ++next;
            if (next == waiting_.size()) {
                // The first one's inputs come from tasks before it, so it becomes ready whatever the others do.
                next = 0;
                const Task& first = waiting_.front();
                exchange_->await(place_of(first), first.inputs());
            }
            if (next > 0) ++overtook;
            const Task task = waiting_[next];
            waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(next));
            execute(task);
        }
        return overtook;
    }

    // The largest error of L times transposed L in this rank's tiles, whose slots have the rows of L that it needs.
    double error() const {
        double most = 0;
        for (const auto& [at, tile] : done_) {
            const Task task{at.first, at.second};
            Tile rest = original(task);
            for (long k = 0; k < task.column; ++k)
                subtract_product(set_.size, rest.data(), slot(task, k),
                                 slot(task, task.row == task.column ? k : task.column + k));
            subtract_product(set_.size, rest.data(), tile.data(),
                             task.row == task.column ? tile.data() : slot(task, 2 * task.column));
            for (const double value : rest)
                most = std::max(most, std::fabs(value));
        }
        return most;
    }

  private:
    const Place& place_of(const Task& task) const { return places_.at({task.row, task.column}); }
    const double* slot(const Task& task, long input) const {
        return exchange_->slots() + (place_of(task).slots + input) * set_.size * set_.size;
    }
    Tile original(const Task& task) const {
        Tile tile;
        for (long i = 0; i < set_.size; ++i)
            for (long j = 0; j < set_.size; ++j)
                tile.push_back(element(set_, task.row * set_.size + i, task.column * set_.size + j));
        return tile;
    }
    bool is_ready(const Task& task) const { return exchange_->is_ready(place_of(task), task.inputs()); }
    void give(const Tile& tile, const Task& to, long input) { exchange_->give(tile, place_of(to), input); }

    void execute(const Task& task) {
        Tile& tile = done_[{task.row, task.column}];  // stays where it is until all that is given of it has left
        tile = original(task);
        const bool diagonal = task.row == task.column;
        for (long k = 0; k < task.column; ++k)
            subtract_product(set_.size, tile.data(), slot(task, k), slot(task, diagonal ? k : task.column + k));
        if (diagonal)
            factorise(set_.size, tile.data());
        else
            solve(set_.size, tile.data(), slot(task, 2 * task.column));
        if (diagonal) {
            for (long row = task.row + 1; row < set_.tiles; ++row)
                give(tile, {row, task.column}, 2 * task.column);
            return;
        }
        // L(row, column) is an input of the tasks in its row, and of those in the column of the row's number.
        for (long column = task.column + 1; column <= task.row; ++column)
            give(tile, {task.row, column}, task.column);
        for (long row = task.row + 1; row < set_.tiles; ++row)
            give(tile, {row, task.row}, task.row + task.column);
    }

    const Settings& set_;
    std::map<std::pair<long, long>, Place> places_;
    std::vector<Task> waiting_;  // this rank's tasks that have not run, in the order of the graph
    std::map<std::pair<long, long>, Tile> done_;
    std::unique_ptr<Exchange> exchange_;  // ends first, because it may still read from done_
};

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("Cholesky factorisation as a graph of tasks that start each other");
    options.number("tiles", set.tiles, 1, 100, "rows of tiles");
    options.number("size", set.size, 1, 1000, "rows of a tile");
    options.flag("messages", set.messages, "the message-passing twin");
    if (const int status = options.parse(argc, argv, session); status != Options::kGoOn) return status;

    double took = 0;
    double error = 0;
    std::int64_t overtook = 0;
    {
        Graph graph(session, set);
        const double begin = Session::start_together();
        overtook = session.sum(static_cast<std::int64_t>(graph.run()));
        took = Session::start_together() - begin;
        error = graph.error();
    }
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double scale = static_cast<double>(set.tiles * set.size);
    const bool right = error < 1e-12 * scale * scale;
    if (session.first())
        std::printf(
            "taskgraph ranks=%d mode=%s tiles=%ldx%ld of %ld tasks=%ld overtook=%lld seconds=%.4f error=%.1e "
            "verified=%s\n",
            session.ranks, set.messages ? "messages" : "notify", set.tiles, set.tiles, set.size,
            set.tiles * (set.tiles + 1) / 2, static_cast<long long>(overtook), took, error, example::yes(right));
    return session.all(right) ? example::kRight : example::kWrong;
}
