// One operation at a time against a target that computes 50 ms without calling MPI, 5 ms into that computation, for
// every operation and flavour ("busy"); and the same operation, after the same pause, against a target that waits
// inside MPI ("idle").
#include <cstring>

#include "measures.h"
#include "windows.h"

namespace bench {
namespace {

constexpr double kPauseNs = 5e6;
constexpr double kComputeNs = 50e6;
constexpr int kWarmUps = 10;
constexpr int kIdleSamples = 5;
constexpr std::uint64_t kFromGet = 77;

struct Operation {
    const char* name;
    bool own_epoch;
    bool returns_count;
    // `turn` counts this operation's uses of its cell; what it fetches goes to `result`.
    void (*issue)(MPI_Win win, MPI_Aint at, std::uint64_t turn, std::uint64_t* result);
    // What the cell must hold after `turns` uses.
    std::uint64_t (*cell_after)(std::uint64_t turns);
};

const std::uint64_t kOne = 1;

std::uint64_t counted(std::uint64_t turns) {
    return turns;
}

void put(MPI_Win win, MPI_Aint at, std::uint64_t turn, std::uint64_t*) {
    const std::uint64_t value = turn + 1;
    MPI_Put(&value, 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win);
    MPI_Win_flush(kTarget, win);
}
void get(MPI_Win win, MPI_Aint at, std::uint64_t, std::uint64_t* result) {
    MPI_Get(result, 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win);
    MPI_Win_flush(kTarget, win);
}
void accumulate(MPI_Win win, MPI_Aint at, std::uint64_t, std::uint64_t*) {
    MPI_Accumulate(&kOne, 1, MPI_UINT64_T, kTarget, at, 1, MPI_UINT64_T, MPI_SUM, win);
    MPI_Win_flush(kTarget, win);
}
void get_accumulate(MPI_Win win, MPI_Aint at, std::uint64_t, std::uint64_t* result) {
    MPI_Get_accumulate(&kOne, 1, MPI_UINT64_T, result, 1, MPI_UINT64_T, kTarget, at, 1, MPI_UINT64_T, MPI_SUM, win);
    MPI_Win_flush(kTarget, win);
}
void fetch_and_op(MPI_Win win, MPI_Aint at, std::uint64_t, std::uint64_t* result) {
    MPI_Fetch_and_op(&kOne, result, MPI_UINT64_T, kTarget, at, MPI_SUM, win);
    MPI_Win_flush(kTarget, win);
}
void compare_and_swap(MPI_Win win, MPI_Aint at, std::uint64_t turn, std::uint64_t* result) {
    const std::uint64_t next = turn + 1;
    MPI_Compare_and_swap(&next, &turn, result, MPI_UINT64_T, kTarget, at, win);
    MPI_Win_flush(kTarget, win);
}
void lock_put(MPI_Win win, MPI_Aint at, std::uint64_t turn, std::uint64_t*) {
    const std::uint64_t value = turn + 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, win);
    MPI_Put(&value, 8, MPI_BYTE, kTarget, at, 8, MPI_BYTE, win);
    MPI_Win_unlock(kTarget, win);
}

const Operation kOperations[] = {
    {"put", false, false, put, counted},
    {"get", false, false, get, [](std::uint64_t) { return kFromGet; }},
    {"accumulate", false, false, accumulate, counted},
    {"get_accumulate", false, true, get_accumulate, counted},
    {"fetch_and_op", false, true, fetch_and_op, counted},
    {"compare_and_swap", false, true, compare_and_swap, counted},
    {"lock_put", true, false, lock_put, counted},
};

// The origin's part: samples single operations and checks what each of them returned.
class Sampler {
  public:
    Sampler(const Operation& what, MPI_Win win, MPI_Aint at) : what_(what), win_(win), at_(at) {}

    double sample() {
        spin_for_ns(kPauseNs);
        return once();
    }
    double once() {
        std::uint64_t result = 0;
        const double begin = now_ns();
        what_.issue(win_, at_, turns_, &result);
        const double took = now_ns() - begin;
        if (what_.returns_count) right_ = right_ && result == turns_;
        if (what_.issue == get) right_ = right_ && result == kFromGet;
        ++turns_;
        return took;
    }
    bool right() const { return right_; }
    std::uint64_t turns() const { return turns_; }

  private:
    const Operation& what_;
    MPI_Win win_;
    MPI_Aint at_;
    std::uint64_t turns_ = 0;
    bool right_ = true;
};

void run_busy(const Context& c, const std::string& name, const Operation& what, Flavour flavour) {
    WindowSet set(flavour, 1, 4096, c.comm);
    const MPI_Win win = set.window(0);
    Sampler sampler(what, win, set.origin_of(0, kTarget));
    const bool is_get = what.issue == get;
    if (c.target() && is_get) {
        set.own_begin();
        std::memcpy(set.memory(0), &kFromGet, sizeof kFromGet);
        set.own_end();
    }
    MPI_Barrier(c.comm);
    std::vector<double> idle{0};
    std::vector<double> busy{0};
    if (c.origin()) {
        if (!what.own_epoch) set.lock_all();
        for (int i = 0; i < kWarmUps; ++i)
            sampler.once();
        idle.clear();
        for (int i = 0; i < kIdleSamples; ++i)
            idle.push_back(sampler.sample());
    }
    MPI_Barrier(c.comm);
    if (c.origin()) busy[0] = sampler.sample();
    if (c.target()) spin_for_ns(kComputeNs);
    MPI_Barrier(c.comm);
    if (c.origin() && !what.own_epoch) set.unlock_all();
    const std::uint64_t turns = c.agree(sampler.turns());
    bool right = sampler.right();
    if (c.target()) {
        set.own_begin();
        std::uint64_t cell = 0;
        std::memcpy(&cell, set.memory(0), sizeof cell);
        right = right && cell == what.cell_after(turns);
        set.own_end();
    }
    c.report("idle." + name.substr(name.find('.') + 1), summarise(idle, 1), right);
    c.report(name, summarise(busy, 1), right);
}

}  // namespace

void add_busy_measures(Measures& list) {
    for (const Flavour flavour : kFlavours) {
        for (const Operation& what : kOperations) {
            list.push_back(
                {std::string("busy.") + what.name + "." + name_of(flavour),
                 [&what, flavour](const Context& c, const std::string& n) { run_busy(c, n, what, flavour); }});
        }
    }
}

}  // namespace bench
