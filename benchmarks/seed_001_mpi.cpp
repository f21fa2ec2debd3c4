// The MPI side of the experiments of seed 001 (Barrett), run by the script of the same name.
//   seed_001_mpi [--short] [--list] [MEASURE...]
// Its measures: fence_epoch, a fence that ends an empty epoch of all processes and begins the next (Figure 1);
// latency.OPERATION.BYTES, one operation between two processes by post, start, complete and wait (Figures 2 to 4), and
// bandwidth.OPERATION.BYTES, one of many in such an epoch (Figures 2 and 3); and the ghost-cell exchange, one or many,
// by fence or pscw, and n, as in many.fence.1024: each process puts n doubles to both neighbours of a ring, in one put
// each or in n puts (Figures 6 and 7). With the times of these it prints libosc's counts of messages and direct writes
// that a process sent in one exchange.
#include <algorithm>
#include <array>
#include <vector>

#include "measures.h"
#include "paced.h"
#include "seed_epochs.h"
#include "windows.h"

// Of libosc, if that is there.
extern "C" __attribute__((weak)) int osc_counter(const char* name, unsigned long long* value);

namespace bench {
namespace {

constexpr std::size_t kCounts[] = {1, 4, 16, 64, 256, 1024, 4096};
constexpr std::size_t kInFlight = 64;

unsigned long long counted(const char* name) {
    unsigned long long value = 0;
    if (osc_counter == nullptr || osc_counter(name, &value) != 0) return 0;
    return value;
}

class Exchange {
  public:
    Exchange(const Context& c, std::size_t count, bool many, bool fences)
        : count_(count),
          many_(many),
          fences_(fences),
          neighbours_{(c.rank + 1) % c.ranks, (c.rank + c.ranks - 1) % c.ranks},
          set_(Flavour::allocate, 1, 2 * count * sizeof(double), c.comm),
          cells_(2 * count, 1.0) {
        MPI_Group everyone = MPI_GROUP_NULL;
        MPI_Comm_group(c.comm, &everyone);
        const int different = neighbours_[0] == neighbours_[1] ? 1 : 2;
        MPI_Group_incl(everyone, different, neighbours_.data(), &group_);
        MPI_Group_free(&everyone);
    }
    ~Exchange() { MPI_Group_free(&group_); }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    void once() {
        ++lap_;
        for (std::size_t side = 0; side < 2; ++side)
            cells_[side * count_] = cells_[(side + 1) * count_ - 1] = mark(side);
        const MPI_Win win = set_.window(0);
        if (fences_) {
            MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
            put(win);
            MPI_Win_fence(0, win);
        } else {
            MPI_Win_post(group_, 0, win);
            MPI_Win_start(group_, 0, win);
            put(win);
            MPI_Win_complete(win);
            MPI_Win_wait(win);
        }
        const auto* ghosts = reinterpret_cast<const double*>(set_.memory(0));
        for (std::size_t side = 0; side < 2; ++side)
            right_ = right_ && ghosts[side * count_] == mark(side) && ghosts[(side + 1) * count_ - 1] == mark(side);
    }

    // What lies between the first cell and the last was put as well.
    bool right() const {
        const auto* ghosts = reinterpret_cast<const double*>(set_.memory(0));
        bool all = right_;
        for (std::size_t side = 0; side < 2; ++side)
            for (std::size_t i = 1; i + 1 < count_; ++i)
                all = all && ghosts[side * count_ + i] == 1.0;
        return all;
    }

  private:
    double mark(std::size_t side) const { return static_cast<double>(2 * lap_ + side); }

    void put(MPI_Win win) const {
        const std::size_t each = many_ ? 1 : count_;
        const int length = static_cast<int>(each);
        for (std::size_t side = 0; side < 2; ++side) {
            for (std::size_t i = side * count_; i < (side + 1) * count_; i += each) {
                MPI_Put(&cells_[i], length, MPI_DOUBLE, neighbours_[side], static_cast<MPI_Aint>(i * sizeof(double)),
                        length, MPI_DOUBLE, win);
            }
        }
    }

    std::size_t count_;
    bool many_;
    bool fences_;
    std::array<int, 2> neighbours_;
    WindowSet set_;
    std::vector<double> cells_;
    MPI_Group group_ = MPI_GROUP_NULL;
    std::uint64_t lap_ = 0;
    bool right_ = true;
};

void run_exchange(const Context& c, const std::string& name, std::size_t count, bool many, bool fences) {
    Exchange exchange(c, count, many, fences);
    const Timing timing = paced(c, [&] { exchange.once(); });
    // Messages are counted over exchanges with nothing else in between.
    constexpr int kCounted = 4;
    MPI_Barrier(c.comm);
    const unsigned long long messages = counted("network.messages");
    const unsigned long long writes = counted("network.writes");
    for (int i = 0; i < kCounted; ++i)
        exchange.once();
    if (c.origin()) {
        const auto of_one = [](unsigned long long after, unsigned long long before) {
            return static_cast<double>(after - before) / kCounted;
        };
        std::printf("{\"counted\": \"%s\", \"messages\": %.3f, \"writes\": %.3f}\n", name.c_str(),
                    of_one(counted("network.messages"), messages), of_one(counted("network.writes"), writes));
    }
    MPI_Barrier(c.comm);
    c.report(name, timing, exchange.right());
}

void add_exchanges(Measures& list) {
    for (const bool many : {false, true}) {
        for (const bool fences : {true, false}) {
            for (const std::size_t count : kCounts) {
                const std::string kind = std::string(many ? "many" : "one") + (fences ? ".fence." : ".pscw.");
                list.push_back(
                    {kind + std::to_string(count), [many, fences, count](const Context& c, const std::string& name) {
                         run_exchange(c, name, count, many, fences);
                     }});
            }
        }
    }
}

void add_transfers(Measures& list) {
    for (const osu::Kind kind : {osu::Kind::put, osu::Kind::get, osu::Kind::acc}) {
        const std::string name = osu::name_of(kind);
        const osu::Operation& operation = osu::operation_of(kind);
        add_sizes(list, "latency." + name, {osu::Sync::pscw, &operation});
        if (kind != osu::Kind::acc)
            add_sizes(list, "bandwidth." + name, {osu::Sync::pscw, &operation, 0, kInFlight, kInFlight});
    }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    bench::Measures list;
    list.push_back({"fence_epoch", [](const bench::Context& c, const std::string& name) {
                        bench::run_epochs(c, osu::synchronisation("fence"), name);
                    }});
    bench::add_transfers(list);
    bench::add_exchanges(list);
    return bench::run_program({"seed_001_mpi", bench::seed_budget, nullptr}, list, argc, argv);
}
