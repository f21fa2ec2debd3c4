// Conjugate gradients (after HPCCG of the Mantevo suite): a 27-point stencil on a block of points per rank, the blocks
// stacked along z, so that a rank exchanges one plane of ghost cells with each of two neighbours in every step.
// One-sided: a rank posts its window to its neighbours and puts its planes into theirs (post, start, complete, wait).
// It posts as soon as it has read its ghost cells, and each step's sum over all ranks lies between that and the next
// start: so every post has been made when a start needs it (MPI_MODE_NOCHECK), and a plane is one message between
// nodes. With
// --late it posts in the exchange, which needs no such sum: a rank then waits for its neighbours only, for a post and
// for data. With --messages: receives posted before sends. The right-hand side makes every unknown 1.
#include <array>
#include <cmath>

#include "example.h"

using example::Options;
using example::Session;

namespace {

struct Settings {
    long nx = 24;
    long ny = 24;
    long nz = 24;
    long steps = 500;
    bool late = false;
    bool messages = false;
};

enum class Exchange { Early, Late, Messages };

// A block of points, with a plane of ghost cells below and one above.
struct Block {
    long nx;
    long ny;
    long nz;
    bool below;  // whether there is a neighbour there
    bool above;

    std::size_t plane() const { return static_cast<std::size_t>(nx * ny); }
    std::size_t points() const { return plane() * static_cast<std::size_t>(nz); }
    std::size_t with_ghosts() const { return points() + 2 * plane(); }
    std::size_t at(long x, long y, long z) const {
        return static_cast<std::size_t>((z + 1) * ny + y) * static_cast<std::size_t>(nx) + static_cast<std::size_t>(x);
    }
};

// to = A from: 27 at the point itself, -1 at each of its up to 26 neighbours. `from` has ghost cells, `to` has none.
void multiply(const Block& b, const double* from, double* to) {
    for (long z = 0; z < b.nz; ++z) {
        const long z_first = z > 0 || b.below ? z - 1 : z;
        const long z_last = z < b.nz - 1 || b.above ? z + 1 : z;
        for (long y = 0; y < b.ny; ++y) {
            const long y_first = y > 0 ? y - 1 : y;
            const long y_last = y < b.ny - 1 ? y + 1 : y;
            for (long x = 0; x < b.nx; ++x) {
                const long x_first = x > 0 ? x - 1 : x;
                const long x_last = x < b.nx - 1 ? x + 1 : x;
                double sum = 28 * from[b.at(x, y, z)];
                for (long zz = z_first; zz <= z_last; ++zz) {
                    for (long yy = y_first; yy <= y_last; ++yy) {
                        const double* row = from + b.at(0, yy, zz);
                        for (long xx = x_first; xx <= x_last; ++xx)
                            sum -= row[xx];
                    }
                }
                *to++ = sum;
            }
        }
    }
}

// The vector that is exchanged, in a window, and its neighbours.
class Ghosts {
  public:
    Ghosts(const Session& session, const Block& block, const Settings& set)
        : b_(block),
          below_(block.below ? session.rank - 1 : MPI_PROC_NULL),
          above_(block.above ? session.rank + 1 : MPI_PROC_NULL) {
        MPI_Win_allocate(static_cast<MPI_Aint>(b_.with_ghosts() * sizeof(double)), sizeof(double), MPI_INFO_NULL,
                         MPI_COMM_WORLD, static_cast<void*>(&all_), &win_);
        MPI_Group world = MPI_GROUP_NULL;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        std::vector<int> ranks;
        for (const int neighbour : {below_, above_}) {
            if (neighbour != MPI_PROC_NULL) ranks.push_back(neighbour);
        }
        MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &neighbours_);
        MPI_Group_free(&world);
        // Between an early post and its wait a rank stores in its own points, and others put into its ghost cells. The
        // separate memory model does not allow that in one window.
        int* model = nullptr;
        int found = 0;
        MPI_Win_get_attr(win_, MPI_WIN_MODEL, static_cast<void*>(&model), &found);
        const bool early = !set.late && found != 0 && *model == MPI_WIN_UNIFIED;
        how_ = set.messages ? Exchange::Messages : early ? Exchange::Early : Exchange::Late;
        was_read();
    }
    Ghosts(const Ghosts&) = delete;
    Ghosts& operator=(const Ghosts&) = delete;
    ~Ghosts() {
        if (how_ == Exchange::Early) access(MPI_PROC_NULL, MPI_PROC_NULL);
        MPI_Group_free(&neighbours_);
        MPI_Win_free(&win_);
    }
    double* all() { return all_; }
    double* own() { return all_ + b_.plane(); }
    const char* name() const {
        return how_ == Exchange::Messages ? "messages" : how_ == Exchange::Late ? "pscw-late" : "pscw";
    }
    double seconds() const { return seconds_; }

    // All ranks take part in a collective call between was_read() and the next exchange().
    void exchange() {
        const double begin = MPI_Wtime();
        how_ == Exchange::Messages ? by_messages() : by_puts();
        seconds_ += MPI_Wtime() - begin;
    }
    // The neighbours may overwrite the ghost cells.
    void was_read() {
        if (how_ == Exchange::Early) MPI_Win_post(neighbours_, MPI_MODE_NOCHECK, win_);
    }

  private:
    void by_puts() {
        if (how_ == Exchange::Late) MPI_Win_post(neighbours_, 0, win_);
        access(below_, above_);
    }
    void access(int below, int above) {
        const int count = static_cast<int>(b_.plane());
        const auto top_ghosts = static_cast<MPI_Aint>(b_.plane() + b_.points());
        MPI_Win_start(neighbours_, how_ == Exchange::Early ? MPI_MODE_NOCHECK : 0, win_);
        // All blocks are of one size: a neighbour's ghost cells are where this rank's are.
        MPI_Put(own(), count, MPI_DOUBLE, below, top_ghosts, count, MPI_DOUBLE, win_);
        MPI_Put(all_ + b_.points(), count, MPI_DOUBLE, above, 0, count, MPI_DOUBLE, win_);
        MPI_Win_complete(win_);
        MPI_Win_wait(win_);
    }
    void by_messages() {
        const int count = static_cast<int>(b_.plane());
        std::array<MPI_Request, 4> requests{};
        MPI_Irecv(all_, count, MPI_DOUBLE, below_, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(own() + b_.points(), count, MPI_DOUBLE, above_, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(own(), count, MPI_DOUBLE, below_, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(all_ + b_.points(), count, MPI_DOUBLE, above_, 0, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests.data(), MPI_STATUSES_IGNORE);
    }

    const Block& b_;
    Exchange how_ = Exchange::Late;
    int below_;
    int above_;
    double* all_ = nullptr;
    MPI_Win win_ = MPI_WIN_NULL;
    MPI_Group neighbours_ = MPI_GROUP_NULL;
    double seconds_ = 0;
};

double dot(const Session& session, const double* one, const double* other, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
        sum += one[i] * other[i];
    return session.sum(sum);
}

struct Solved {
    long steps = 0;
    double residual = 0;
    double error = 0;  // the largest difference from the solution, which is 1 everywhere
};

Solved solve(const Session& session, const Block& b, Ghosts& direction, long most) {
    const std::size_t n = b.points();
    double* p = direction.own();
    std::vector<double> x(n, 0);
    std::vector<double> product(n);
    // b = A * 1, and with x = 0 that is the first residual and direction.
    std::fill(p, p + n, 1.0);
    direction.exchange();
    multiply(b, direction.all(), product.data());
    direction.was_read();
    std::vector<double> r(product);
    std::copy(r.begin(), r.end(), p);
    double rr = dot(session, r.data(), r.data(), n);
    const double goal = rr * 1e-20;
    Solved solved;
    example::Progress progress(session, "steps", most);
    while (solved.steps < most && rr > goal) {
        direction.exchange();
        multiply(b, direction.all(), product.data());
        direction.was_read();
        const double alpha = rr / dot(session, p, product.data(), n);
        for (std::size_t i = 0; i < n; ++i) {
            x[i] += alpha * p[i];
            r[i] -= alpha * product[i];
        }
        const double before = rr;
        rr = dot(session, r.data(), r.data(), n);
        for (std::size_t i = 0; i < n; ++i)
            p[i] = r[i] + rr / before * p[i];
        progress.at(++solved.steps);
    }
    solved.residual = std::sqrt(rr);
    for (const double value : x)
        solved.error = std::max(solved.error, std::fabs(value - 1));
    MPI_Allreduce(MPI_IN_PLACE, &solved.error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return solved;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    Options options("conjugate gradients on a 27-point stencil");
    options.number("nx", set.nx, 1, 4096, "points of each rank's block along x");
    options.number("ny", set.ny, 1, 4096, "and along y");
    options.number("nz", set.nz, 1, 4096, "and along z, the direction of the neighbours");
    options.number("steps", set.steps, 1, 1000000, "steps at most");
    options.flag("late", set.late, "post in the exchange");
    options.flag("messages", set.messages, "the message-passing twin");
    const int status = options.parse(argc, argv, session);
    if (status != Options::kGoOn) return status;

    const Block block{set.nx, set.ny, set.nz, !session.first(), !session.last()};
    Ghosts direction(session, block, set);
    const double begin = Session::start_together();
    const Solved solved = solve(session, block, direction, set.steps);
    const double took = Session::start_together() - begin;
    const double ghosts = session.sum(direction.seconds()) / session.ranks / static_cast<double>(solved.steps + 1);
    const bool right = session.all(solved.error < 1e-6);
    if (session.first()) {
        std::printf(
            "hpccg ranks=%d mode=%s points=%.0f steps=%ld residual=%.1e error=%.1e seconds=%.4f ghosts_us=%.2f "
            "verified=%s\n",
            session.ranks, direction.name(), static_cast<double>(block.points()) * session.ranks, solved.steps,
            solved.residual, solved.error, took, ghosts * 1e6, example::yes(right));
    }
    return right ? example::kRight : example::kWrong;
}
