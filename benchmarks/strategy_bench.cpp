// What each strategy costs: one epoch with a number of operations of one size, by windows whose info keys force it to
// be immediate or deferred and by one that leaves the choice to the library, in turns within one run. An ordinary MPI
// program; an MPI that does not know the keys shows three times the same. Run by the script strategies:
//   strategy_bench [--short] [--list] [MEASURE...]
// A measure is KIND.nOPERATIONS.bBYTES; each prints a line for each of its three windows.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "finalize.h"
#include "measures.h"
#include "net.h"

namespace bench {
namespace {

constexpr std::array<const char*, 3> kModes = {"immediate", "deferred", "auto"};
constexpr std::size_t kWindowBytes = std::size_t{4} << 20;
constexpr std::array<int, 4> kOperations = {0, 1, 100, 10000};
constexpr std::array<int, 2> kBytes = {8, 65536};

// The three windows, whose memory is the same size but not the same.
struct Trio {
    std::array<MPI_Win, kModes.size()> windows{};
    std::array<unsigned char*, kModes.size()> memory{};

    explicit Trio(MPI_Comm comm) {
        for (std::size_t i = 0; i < kModes.size(); ++i) {
            MPI_Info info = MPI_INFO_NULL;
            MPI_Info_create(&info);
            for (const char* key : {"osc_fence", "osc_pscw", "osc_lock"})
                MPI_Info_set(info, key, kModes[i]);
            MPI_Win_allocate(static_cast<MPI_Aint>(kWindowBytes), 1, info, comm, static_cast<void*>(&memory[i]),
                             &windows[i]);
            MPI_Info_free(&info);
        }
    }
    Trio(const Trio&) = delete;
    Trio& operator=(const Trio&) = delete;
    ~Trio() {
        for (MPI_Win& win : windows)
            MPI_Win_free(&win);
    }
};

// One epoch: `count` operations of `bytes` bytes each. Owns what they read and write, which lasts until it has ended.
struct Work {
    const Context& c;
    int count;
    int bytes;
    std::vector<unsigned char> data;
    std::vector<unsigned char> got;
    MPI_Group left = MPI_GROUP_NULL;   // the origin of this process, in a ring
    MPI_Group right = MPI_GROUP_NULL;  // its target

    Work(const Context& context, int operations, int size)
        : c(context),
          count(operations),
          bytes(size),
          data(static_cast<std::size_t>(size), 1),
          got(static_cast<std::size_t>(size)) {
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Comm_group(c.comm, &all);
        const int after = (c.rank + 1) % c.ranks;
        const int before = (c.rank + c.ranks - 1) % c.ranks;
        MPI_Group_incl(all, 1, &after, &right);
        MPI_Group_incl(all, 1, &before, &left);
        MPI_Group_free(&all);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
        MPI_Group_free(&left);
        MPI_Group_free(&right);
    }

    MPI_Aint place(int i) const {
        return static_cast<MPI_Aint>(static_cast<std::size_t>(i) * static_cast<std::size_t>(bytes) % kWindowBytes);
    }
    void put(int target, int i, MPI_Win win) const {
        MPI_Put(data.data(), bytes, MPI_BYTE, target, place(i), bytes, MPI_BYTE, win);
    }
    void get(int target, int i, MPI_Win win) {
        MPI_Get(got.data(), bytes, MPI_BYTE, target, place(i), bytes, MPI_BYTE, win);
    }
};

using Epoch = void (*)(Work& work, MPI_Win win);

// All to all others, in turn.
template <int kOpening, int kClosing>
void fence(Work& w, MPI_Win win) {
    MPI_Win_fence(kOpening, win);
    for (int i = 0; i < w.count; ++i)
        w.put((w.c.rank + 1 + i % (w.c.ranks - 1)) % w.c.ranks, i, win);
    MPI_Win_fence(kClosing, win);
}

void pscw(Work& w, MPI_Win win) {
    MPI_Win_post(w.left, 0, win);
    MPI_Win_start(w.right, 0, win);
    for (int i = 0; i < w.count; ++i)
        w.put((w.c.rank + 1) % w.c.ranks, i, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
}

// The others are in a collective of the MPI while rank 0 works on the last one.
template <class Body>
void alone(Work& w, MPI_Win win, Body&& body) {
    if (!w.c.origin()) return;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.c.ranks - 1, 0, win);
    body(w.c.ranks - 1);
    MPI_Win_unlock(w.c.ranks - 1, win);
}

void lock_put(Work& w, MPI_Win win) {
    alone(w, win, [&](int target) {
        for (int i = 0; i < w.count; ++i)
            w.put(target, i, win);
    });
}

void lock_get(Work& w, MPI_Win win) {
    alone(w, win, [&](int target) {
        for (int i = 0; i < w.count; ++i)
            w.get(target, i, win);
    });
}

void lock_put_get(Work& w, MPI_Win win) {
    alone(w, win, [&](int target) {
        w.put(target, 0, win);
        w.get(target, 1, win);
    });
}

void lock_fop(Work& w, MPI_Win win) {
    alone(w, win,
          [&](int target) { MPI_Fetch_and_op(w.data.data(), w.got.data(), MPI_LONG_LONG, target, 0, MPI_SUM, win); });
}

void lock_acc(Work& w, MPI_Win win) {
    alone(w, win, [&](int target) {
        MPI_Accumulate(w.data.data(), 1, MPI_LONG_LONG, target, 0, 1, MPI_LONG_LONG, MPI_SUM, win);
    });
}

void lock_all(Work& w, MPI_Win win) {
    if (!w.c.origin()) return;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < w.count; ++i)
        w.put(1 + i % (w.c.ranks - 1), i, win);
    MPI_Win_unlock_all(win);
}

// Epochs before the clock starts: the library sees what they are like.
constexpr int kWarm = 2;

// A round is as many epochs as fill its time, and there are as many rounds as fill theirs, within limits: of few
// epochs, where messages take long, the median would be one of few accidents.
constexpr std::uint64_t kEpochs = 8;
constexpr double kRounds = 9;
constexpr double kMostRounds = 15;

void run(const Context& c, const std::string& name, Epoch epoch, int count, int bytes) {
    const Trio trio(c.comm);
    Work work(c, count, bytes);
    std::array<std::vector<double>, kModes.size()> each;
    std::uint64_t per_batch = c.brief ? 1 : kEpochs;
    const auto batch = [&](std::size_t mode) {
        for (int i = 0; i < kWarm; ++i)
            epoch(work, trio.windows[mode]);
        MPI_Barrier(c.comm);
        const double begin = now_ns();
        for (std::uint64_t i = 0; i < per_batch; ++i)
            epoch(work, trio.windows[mode]);
        const double took = now_ns() - begin;
        MPI_Barrier(c.comm);
        return took;
    };
    const double batch_ns = c.brief ? 2e5 : 3e6;
    double took = batch(0);
    while (c.agree(took < batch_ns ? 1 : 0) != 0) {
        per_batch *= 2;
        took = batch(0);
    }
    const double fit = kMostRounds * batch_ns / took;
    const double least = c.brief ? 3 : kRounds;
    const auto rounds = static_cast<int>(c.agree(static_cast<std::uint64_t>(std::clamp(fit, least, kMostRounds))));
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < kModes.size(); ++i) {
            const std::size_t mode = (i + static_cast<std::size_t>(round)) % kModes.size();
            each[mode].push_back(batch(mode) / static_cast<double>(per_batch));
        }
    for (std::size_t mode = 0; mode < kModes.size(); ++mode)
        c.report(name + "." + kModes[mode], summarise(each[mode], per_batch), true);
}

void add(Measures& list, const char* kind, Epoch epoch, int count, int bytes) {
    const std::string name = std::string(kind) + ".n" + std::to_string(count) + ".b" + std::to_string(bytes);
    list.push_back(
        {name, [epoch, count, bytes](const Context& c, const std::string& n) { run(c, n, epoch, count, bytes); }});
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    bench::Measures list;
    struct Kind {
        const char* name;
        bench::Epoch epoch;
    };
    for (const auto& [kind, epoch] :
         {Kind{"fence", bench::fence<0, 0>},
          Kind{"fence_asserted", bench::fence<MPI_MODE_NOPRECEDE, MPI_MODE_NOSUCCEED>}, Kind{"pscw", bench::pscw},
          Kind{"lock_put", bench::lock_put}, Kind{"lock_all", bench::lock_all}})
        for (const int count : bench::kOperations)
            for (const int bytes : bench::kBytes)
                if (count > 0 || bytes == 8) bench::add(list, kind, epoch, count, bytes);
    bench::add(list, "lock_get", bench::lock_get, 1, 8);
    bench::add(list, "lock_fop", bench::lock_fop, 1, 8);
    bench::add(list, "lock_acc", bench::lock_acc, 1, 8);
    bench::add(list, "lock_put_get", bench::lock_put_get, 2, 8);
    return bench::run_program({"strategy_bench", bench::net_budget, bench::limit_finalize}, list, argc, argv);
}
