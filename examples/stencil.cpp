// Heat on a plate: a 2-D field in blocks over a grid of ranks; each step every point becomes the mean of its four
// neighbours. Ranks exchange rows and columns of ghost cells by one of --exchange: puts between fences; puts between
// post, start, complete and wait, which keep only neighbours in step; notified puts (osc/notify_fallback.h), which keep
// them in step by counters; or messages. --picture writes the field as an image (PGM).
#include <osc/notify_fallback.h>

#include <array>
#include <cmath>

#include "example.h"

using example::Options;
using example::Session;

namespace {

struct Settings {
    long width = 128;
    long height = 96;
    long steps = 100;
    std::string exchange = "fence";
    std::string picture;
    bool arrays = false;
};

// The part of `count` points that place `at` of `parts` has.
struct Part {
    long first;
    long count;
    Part(long points, int at, int parts) : first(points * at / parts), count(points * (at + 1) / parts - first) {}
};

// The plate's left edge is hot; the others are cold.
double edge(long x) {
    return x < 0 ? 1.0 : 0.0;
}

constexpr int kSides = 4;  // left, right, up, down; a side's opposite is side ^ 1

// A rank's block of two fields, now and next, each with a frame of ghost cells; both are in one window.
class Plate {
  public:
    Plate(const Session& session, const Settings& set)
        : dims_(grid(session.ranks)),
          columns_(set.width, session.rank % dims_[0], dims_[0]),
          rows_(set.height, session.rank / dims_[0], dims_[1]),
          stride_(columns_.count + 2) {
        const int x = session.rank % dims_[0];
        const int y = session.rank / dims_[0];
        neighbour_ = {x > 0 ? session.rank - 1 : MPI_PROC_NULL, x < dims_[0] - 1 ? session.rank + 1 : MPI_PROC_NULL,
                      y > 0 ? session.rank - dims_[0] : MPI_PROC_NULL,
                      y < dims_[1] - 1 ? session.rank + dims_[0] : MPI_PROC_NULL};
        for (int side = 0; side < kSides; ++side)
            there_[at(side)] = layout_of(set, at(side), x, y);
        const auto bytes = static_cast<MPI_Aint>(sizeof(double)) * 2 * field();
        if (set.arrays) {
            own_.resize(static_cast<std::size_t>(2 * field()));
            fields_ = own_.data();
            MPI_Win_create(fields_, bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
        } else {
            MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&fields_), &win_);
        }
        MPI_Type_vector(static_cast<int>(rows_.count), 1, static_cast<int>(stride_), MPI_DOUBLE, &column_);
        MPI_Type_commit(&column_);
        MPI_Type_contiguous(static_cast<int>(columns_.count), MPI_DOUBLE, &row_);
        MPI_Type_commit(&row_);
        for (int side = 0; side < 2; ++side)
            there_column_[at(side)] = column_in(there_[at(side)]);
        MPI_Group world = MPI_GROUP_NULL;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        std::vector<int> ranks;
        for (const int n : neighbour_) {
            if (n != MPI_PROC_NULL) ranks.push_back(n);
        }
        MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &neighbours_);
        MPI_Group_free(&world);
        for (int which = 0; which < 2; ++which)
            clear(which);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win_);
        if (set.exchange != "notify") return;
        OSC_Win_set_num_notify(win_, MPI_INFO_NULL, kSides);
        MPI_Win_lock_all(0, win_);
        locked_ = true;
    }
    Plate(const Plate&) = delete;
    Plate& operator=(const Plate&) = delete;
    ~Plate() {
        if (locked_) MPI_Win_unlock_all(win_);
        MPI_Group_free(&neighbours_);
        for (int side = 0; side < 2; ++side)
            MPI_Type_free(&there_column_[at(side)]);
        MPI_Type_free(&column_);
        MPI_Type_free(&row_);
        MPI_Win_free(&win_);
    }

    void step(const std::string& exchange) {
        if (exchange == "fence") by_fence();
        if (exchange == "pscw") by_pscw();
        if (exchange == "notify") by_notify();
        if (exchange == "messages") by_messages();
        const double* now = fields_ + now_ * field();
        double* next = fields_ + (1 - now_) * field();
        for (long y = 1; y <= rows_.count; ++y) {
            for (long i = y * stride_ + 1; i <= y * stride_ + columns_.count; ++i)
                next[i] = 0.25 * (now[i - 1] + now[i + 1] + now[i - stride_] + now[i + stride_]);
        }
        now_ = 1 - now_;
    }

    // The whole field on rank 0.
    std::vector<double> gather(const Session& session, const Settings& set) const {
        std::vector<double> own;
        for (long y = 1; y <= rows_.count; ++y) {
            const double* row = fields_ + now_ * field() + y * stride_;
            own.insert(own.end(), row + 1, row + 1 + columns_.count);
        }
        if (!session.first()) {
            MPI_Send(own.data(), static_cast<int>(own.size()), MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
            return {};
        }
        std::vector<double> all(static_cast<std::size_t>(set.width * set.height));
        for (int rank = 0; rank < session.ranks; ++rank) {
            const Part columns(set.width, rank % dims_[0], dims_[0]);
            const Part rows(set.height, rank / dims_[0], dims_[1]);
            std::vector<double> block(static_cast<std::size_t>(columns.count * rows.count));
            if (rank == 0) {
                block = own;
            } else {
                MPI_Recv(block.data(), static_cast<int>(block.size()), MPI_DOUBLE, rank, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            }
            for (long y = 0; y < rows.count; ++y)
                std::copy(block.begin() + y * columns.count, block.begin() + (y + 1) * columns.count,
                          all.begin() + (rows.first + y) * set.width + columns.first);
        }
        return all;
    }

    static std::array<int, 2> grid(int ranks) {
        std::array<int, 2> dims{};
        MPI_Dims_create(ranks, 2, dims.data());
        return dims;
    }

  private:
    struct Layout {  // of a neighbour's block
        long stride = 0;
        long columns = 0;
        long rows = 0;
    };

    static std::size_t at(int side) { return static_cast<std::size_t>(side); }
    MPI_Aint field() const { return stride_ * (rows_.count + 2); }
    Layout layout_of(const Settings& set, std::size_t side, int x, int y) const {
        if (neighbour_[side] == MPI_PROC_NULL) return {columns_.count + 2, columns_.count, rows_.count};
        const int step = side % 2 == 0 ? -1 : 1;
        const Part columns(set.width, x + (side < 2 ? step : 0), dims_[0]);
        const Part rows(set.height, y + (side < 2 ? 0 : step), dims_[1]);
        return {columns.count + 2, columns.count, rows.count};
    }
    static MPI_Datatype column_in(const Layout& there) {
        MPI_Datatype column = MPI_DATATYPE_NULL;
        MPI_Type_vector(static_cast<int>(there.rows), 1, static_cast<int>(there.stride), MPI_DOUBLE, &column);
        MPI_Type_commit(&column);
        return column;
    }
    void clear(int which) {
        double* f = fields_ + which * field();
        std::fill(f, f + field(), 0.0);
        for (long y = 0; y < rows_.count + 2 && columns_.first == 0; ++y)
            f[y * stride_] = edge(-1);
    }

    // Where a side's own cells begin in a field, and where a block keeps the ghost cells of a side.
    MPI_Aint own_cells(std::size_t side) const {
        const std::array<MPI_Aint, kSides> first{stride_ + 1, stride_ + columns_.count, stride_ + 1,
                                                 stride_ * rows_.count + 1};
        return now_ * field() + first[side];
    }
    MPI_Aint ghosts(std::size_t side, const Layout& block) const {
        const std::array<MPI_Aint, kSides> first{block.stride, block.stride + block.columns + 1, 1,
                                                 block.stride * (block.rows + 1) + 1};
        return now_ * block.stride * (block.rows + 2) + first[side];
    }

    void put_sides() {
        for (std::size_t side = 0; side < kSides; ++side) {
            const MPI_Datatype here = side < 2 ? column_ : row_;
            const MPI_Datatype there = side < 2 ? there_column_[side] : row_;
            MPI_Put(fields_ + own_cells(side), 1, here, neighbour_[side], ghosts(side ^ 1U, there_[side]), 1, there,
                    win_);
        }
    }
    void by_fence() {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win_);
        put_sides();
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win_);
    }
    void by_pscw() {
        MPI_Win_post(neighbours_, 0, win_);
        MPI_Win_start(neighbours_, 0, win_);
        put_sides();
        MPI_Win_complete(win_);
        MPI_Win_wait(win_);
    }
    // A counter for each side. A neighbour that is a step ahead puts into the other field, and it gets no further: it
    // waits for this rank's cells of that step.
    void by_notify() {
        MPI_Win_flush_local_all(win_);  // this step changes the cells that the last one put
        ++exchanges_;
        for (std::size_t side = 0; side < kSides; ++side) {
            const MPI_Datatype here = side < 2 ? column_ : row_;
            const MPI_Datatype there = side < 2 ? there_column_[side] : row_;
            OSC_Put_notify(fields_ + own_cells(side), 1, here, neighbour_[side], ghosts(side ^ 1U, there_[side]), 1,
                           there, static_cast<int>(side ^ 1U), win_);
        }
        for (std::size_t side = 0; side < kSides; ++side) {
            if (neighbour_[side] != MPI_PROC_NULL)
                OSC_Win_wait_notify(win_, static_cast<int>(side), exchanges_, nullptr);
        }
    }
    void by_messages() {
        const Layout own{stride_, columns_.count, rows_.count};
        std::array<MPI_Request, 2 * kSides> requests{};
        for (std::size_t side = 0; side < kSides; ++side) {
            const MPI_Datatype type = side < 2 ? column_ : row_;
            MPI_Irecv(fields_ + ghosts(side, own), 1, type, neighbour_[side], static_cast<int>(side ^ 1U),
                      MPI_COMM_WORLD, &requests[side]);
            MPI_Isend(fields_ + own_cells(side), 1, type, neighbour_[side], static_cast<int>(side), MPI_COMM_WORLD,
                      &requests[kSides + side]);
        }
        MPI_Waitall(2 * kSides, requests.data(), MPI_STATUSES_IGNORE);
    }

    std::array<int, 2> dims_;
    Part columns_;
    Part rows_;
    long stride_;
    std::array<int, kSides> neighbour_{};
    std::array<Layout, kSides> there_{};
    std::vector<double> own_;
    double* fields_ = nullptr;
    MPI_Win win_ = MPI_WIN_NULL;
    MPI_Datatype column_ = MPI_DATATYPE_NULL;
    MPI_Datatype row_ = MPI_DATATYPE_NULL;
    std::array<MPI_Datatype, 2> there_column_{};
    MPI_Group neighbours_ = MPI_GROUP_NULL;
    int now_ = 0;
    MPI_Count exchanges_ = 0;
    bool locked_ = false;
};

// The same on one process.
std::vector<double> sequential(const Settings& set) {
    std::vector<double> now(static_cast<std::size_t>(set.width * set.height), 0);
    std::vector<double> next(now);
    const auto value = [&](long x, long y) {
        if (x < 0 || x >= set.width || y < 0 || y >= set.height) return edge(x);
        return now[static_cast<std::size_t>(y * set.width + x)];
    };
    for (long step = 0; step < set.steps; ++step) {
        for (long y = 0; y < set.height; ++y) {
            for (long x = 0; x < set.width; ++x)
                next[static_cast<std::size_t>(y * set.width + x)] =
                    0.25 * (value(x - 1, y) + value(x + 1, y) + value(x, y - 1) + value(x, y + 1));
        }
        now.swap(next);
    }
    return now;
}

bool draw(const Settings& set, const std::vector<double>& field) {
    std::FILE* file = std::fopen(set.picture.c_str(), "wb");
    if (file == nullptr) return false;
    std::fprintf(file, "P5\n%ld %ld\n255\n", set.width, set.height);
    for (const double value : field)
        std::fputc(static_cast<int>(std::sqrt(value) * 255), file);
    return std::fclose(file) == 0;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("heat on a plate, with four ways to exchange ghost cells");
    options.number("width", set.width, 1, 1L << 20, "points across");
    options.number("height", set.height, 1, 1L << 20, "points down");
    options.number("steps", set.steps, 1, 1000000000, "steps");
    options.word("exchange", set.exchange, "fence|pscw|notify|messages", "how ghost cells travel");
    options.flag("arrays", set.arrays, "a window over the program's own arrays");
    options.word("picture", set.picture, nullptr, "write the field there (PGM)");
    const int status = options.parse(argc, argv, session);
    if (status != Options::kGoOn) return status;
    const std::array<int, 2> dims = Plate::grid(session.ranks);
    if (set.width < dims[0] || set.height < dims[1]) {
        if (session.first())
            std::fprintf(stderr, "stencil: %d x %d ranks need as many points at least\n", dims[0], dims[1]);
        return example::kUsage;
    }

    std::vector<double> field;
    double took = 0;
    {
        Plate plate(session, set);
        example::Progress progress(session, "steps", set.steps);
        const double begin = Session::start_together();
        for (long step = 0; step < set.steps; ++step) {
            plate.step(set.exchange);
            progress.at(step);
        }
        took = Session::start_together() - begin;
        field = plate.gather(session, set);
    }
    double off = 0;
    bool drawn = true;
    if (session.first()) {
        const std::vector<double> right = sequential(set);
        for (std::size_t i = 0; i < right.size(); ++i)
            off = std::max(off, std::fabs(right[i] - field[i]));
        if (!set.picture.empty()) drawn = draw(set, field);
        if (!drawn) std::fprintf(stderr, "stencil: %s cannot be written\n", set.picture.c_str());
        std::printf("stencil ranks=%d exchange=%s points=%ldx%ld steps=%ld seconds=%.4f step_us=%.2f verified=%s\n",
                    session.ranks, set.exchange.c_str(), set.width, set.height, set.steps, took,
                    took / static_cast<double>(set.steps) * 1e6, example::yes(off < 1e-12));
    }
    return session.all(off < 1e-12 && drawn) ? example::kRight : example::kWrong;
}
