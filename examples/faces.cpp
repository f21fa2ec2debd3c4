// Heat in a box: a 3-D field in blocks over a grid of ranks; each step every point becomes the mean of its six
// neighbours. Fields are the program's own arrays, each with a window over it, and faces of blocks are subarrays of
// both sides. Ranks exchange them by one of --exchange: puts between fences; puts between post, start, complete and
// wait, which keep only neighbours in step; or messages. Every run compares its field with that of the messages, too.
#include <array>
#include <cmath>

#include "example.h"

using example::Options;
using example::Session;

namespace {

constexpr std::size_t kDims = 3;
using Three = std::array<int, kDims>;  // x, y, z

struct Settings {
    Three points{};
    long steps = 100;
    std::string exchange = "fence";
};

// The part of `points` that place `at` of `parts` has.
struct Part {
    int first;
    int count;
    Part(int points, int at, int parts) : first(points * at / parts), count(points * (at + 1) / parts - first) {}
};

// The ranks along each dimension.
Three grid(const Session& session) {
    Three dims{};
    MPI_Dims_create(session.ranks, kDims, dims.data());
    return dims;
}

// One layer of a block in a frame of ghost cells: the points at place `at` of dimension `d`. x is contiguous.
MPI_Datatype layer(const Three& block, std::size_t d, int at) {
    Three sizes = block, part = block, first{1, 1, 1};
    for (int& size : sizes)
        size += 2;
    part[d] = 1;
    first[d] = at;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(kDims, sizes.data(), part.data(), first.data(), MPI_ORDER_FORTRAN, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

// A rank's block of two fields, now and next, each with a frame of ghost cells. The edge of the box stays at 0.
class Box {
  public:
    Box(const Session& session, const Settings& set) : set_(set) {
        Three dims = grid(session), open{}, place{};
        MPI_Cart_create(MPI_COMM_WORLD, kDims, dims.data(), open.data(), 0, &comm_);
        MPI_Cart_coords(comm_, session.rank, kDims, place.data());
        for (std::size_t d = 0; d < kDims; ++d) {
            const Part part(set.points[d], place[d], dims[d]);
            first_[d] = part.first;
            block_[d] = part.count;
        }
        std::vector<int> ranks;
        for (std::size_t d = 0; d < kDims; ++d) {
            for (const int step : {-1, 1}) {
                int self = 0, neighbour = MPI_PROC_NULL;
                MPI_Cart_shift(comm_, static_cast<int>(d), step, &self, &neighbour);
                if (neighbour == MPI_PROC_NULL) continue;
                Three there = block_;  // the neighbour's block, as large as this one in the other dimensions
                there[d] = Part(set.points[d], place[d] + step, dims[d]).count;
                faces_.push_back({neighbour, layer(block_, d, step < 0 ? 1 : block_[d]),
                                  layer(block_, d, step < 0 ? 0 : block_[d] + 1),
                                  layer(there, d, step < 0 ? there[d] + 1 : 0)});
                ranks.push_back(neighbour);
            }
        }
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Comm_group(comm_, &all);
        MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &neighbours_);
        MPI_Group_free(&all);
        for (std::size_t which = 0; which < 2; ++which) {
            std::vector<double>& field = fields_[which];
            field.resize(at(block_[0] + 1, block_[1] + 1, block_[2] + 1) + 1);
            MPI_Win_create(field.data(), static_cast<MPI_Aint>(field.size() * sizeof(double)), sizeof(double),
                           MPI_INFO_NULL, comm_, &windows_[which]);
        }
        each_point([&](int x, int y, int z) { fields_[0][at(x, y, z)] = wave(x, y, z); });
    }
    Box(const Box&) = delete;
    Box& operator=(const Box&) = delete;
    ~Box() {
        for (Face& face : faces_) {
            for (MPI_Datatype* type : {&face.own, &face.ghosts, &face.ghosts_there})
                MPI_Type_free(type);
        }
        MPI_Group_free(&neighbours_);
        for (MPI_Win& window : windows_)
            MPI_Win_free(&window);
        MPI_Comm_free(&comm_);
    }

    void step(const std::string& exchange) {
        if (exchange == "fence") by_fence();
        if (exchange == "pscw") by_pscw();
        if (exchange == "messages") by_messages();
        const std::vector<double>& now = fields_[now_];
        std::vector<double>& next = fields_[1 - now_];
        const std::size_t row = at(0, 1, 0), plane = at(0, 0, 1);
        each_point([&](int x, int y, int z) {
            const std::size_t i = at(x, y, z);
            next[i] = (now[i - 1] + now[i + 1] + now[i - row] + now[i + row] + now[i - plane] + now[i + plane]) / 6;
        });
        now_ = 1 - now_;
    }

    const std::vector<double>& field() const { return fields_[now_]; }
    // How far the field is from the right one.
    double off() const {
        double factor = 0;
        for (const int points : set_.points)
            factor += std::cos(angle(points)) / kDims;
        double most = 0;
        const double scale = std::pow(factor, static_cast<double>(set_.steps));
        each_point([&](int x, int y, int z) {
            most = std::max(most, std::fabs(field()[at(x, y, z)] - scale * wave(x, y, z)));
        });
        return most;
    }

  private:
    struct Face {
        int neighbour;
        MPI_Datatype own;           // the outermost points of this block,
        MPI_Datatype ghosts;        // the ghost cells beside them,
        MPI_Datatype ghosts_there;  // and those that the neighbour has of this block
    };

    std::size_t at(int x, int y, int z) const {
        return static_cast<std::size_t>(x) +
               static_cast<std::size_t>(block_[0] + 2) *
                   (static_cast<std::size_t>(y) +
                    static_cast<std::size_t>(block_[1] + 2) * static_cast<std::size_t>(z));
    }
    template <class F>
    void each_point(F&& f) const {
        for (int z = 1; z <= block_[2]; ++z) {
            for (int y = 1; y <= block_[1]; ++y) {
                for (int x = 1; x <= block_[0]; ++x)
                    f(x, y, z);
            }
        }
    }
    // The first field: half a sine wave along each dimension, which a step leaves as it is but for a factor.
    static double angle(int points) { return std::acos(-1.0) / (points + 1); }
    double wave(int x, int y, int z) const {
        return std::sin((first_[0] + x) * angle(set_.points[0])) * std::sin((first_[1] + y) * angle(set_.points[1])) *
               std::sin((first_[2] + z) * angle(set_.points[2]));
    }

    void put_faces() {
        for (const Face& face : faces_)
            MPI_Put(fields_[now_].data(), 1, face.own, face.neighbour, 0, 1, face.ghosts_there, windows_[now_]);
    }
    void by_fence() {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, windows_[now_]);
        put_faces();
        MPI_Win_fence(MPI_MODE_NOSUCCEED, windows_[now_]);
    }
    void by_pscw() {
        MPI_Win_post(neighbours_, 0, windows_[now_]);
        MPI_Win_start(neighbours_, 0, windows_[now_]);
        put_faces();
        MPI_Win_complete(windows_[now_]);
        MPI_Win_wait(windows_[now_]);
    }
    void by_messages() {
        std::vector<MPI_Request> requests(2 * faces_.size());
        MPI_Request* request = requests.data();
        for (const Face& face : faces_)
            MPI_Irecv(fields_[now_].data(), 1, face.ghosts, face.neighbour, 0, comm_, request++);
        for (const Face& face : faces_)
            MPI_Isend(fields_[now_].data(), 1, face.own, face.neighbour, 0, comm_, request++);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }

    const Settings& set_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    Three first_{};  // of this block's points in the box
    Three block_{};  // its points along each dimension
    std::vector<Face> faces_;
    MPI_Group neighbours_ = MPI_GROUP_NULL;
    std::array<std::vector<double>, 2> fields_;
    std::array<MPI_Win, 2> windows_{MPI_WIN_NULL, MPI_WIN_NULL};
    std::size_t now_ = 0;
};

// All steps; the time of one in microseconds.
double run(Box& box, const Session& session, const Settings& set, const std::string& exchange) {
    example::Progress progress(session, "steps", set.steps);
    const double begin = Session::start_together();
    for (long step = 0; step < set.steps; ++step) {
        box.step(exchange);
        progress.at(step);
    }
    return (Session::start_together() - begin) / static_cast<double>(set.steps) * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(&argc, &argv);
    Settings set;
    std::array<long, kDims> points{48, 48, 48};
    Options options("heat in a box, with three ways to exchange its blocks' faces");
    options.number("nx", points[0], 1, 1L << 10, "points along x");
    options.number("ny", points[1], 1, 1L << 10, "points along y");
    options.number("nz", points[2], 1, 1L << 10, "points along z");
    options.number("steps", set.steps, 1, 1000000000, "steps");
    options.word("exchange", set.exchange, "fence|pscw|messages", "how faces travel");
    const int status = options.parse(argc, argv, session);
    if (status != Options::kGoOn) return status;
    const Three dims = grid(session);
    for (std::size_t d = 0; d < kDims; ++d) {
        set.points[d] = static_cast<int>(points[d]);
        if (set.points[d] >= dims[d]) continue;
        if (session.first())
            std::fprintf(stderr, "faces: %d x %d x %d ranks need as many points at least\n", dims[0], dims[1], dims[2]);
        return example::kUsage;
    }

    Box box(session, set), twin(session, set);
    const double step_us = run(box, session, set, set.exchange);
    const double messages_us = run(twin, session, set, "messages");
    const bool right = session.all(box.off() < 1e-12 && box.field() == twin.field());
    if (session.first())
        std::printf("faces ranks=%d exchange=%s points=%dx%dx%d steps=%ld step_us=%.2f messages_us=%.2f verified=%s\n",
                    session.ranks, set.exchange.c_str(), set.points[0], set.points[1], set.points[2], set.steps,
                    step_us, messages_us, example::yes(right));
    return right ? example::kRight : example::kWrong;
}
