// Small operations, one at a time, against a target that computes 50 ms at a time and calls MPI only in between: one
// after the other ("computing"), or one per 50 ms ("cold"); and what it costs a process that sleeps to be a target.
#include "measures.h"
#include "net.h"
#include "small_ops.h"
#include "windows.h"

namespace bench {
namespace {

constexpr std::size_t kWindowBytes = 4096;
constexpr int kWarmUps = 20;
constexpr int kStopTag = 1;

void compute_until_told(MPI_Comm comm) {
    int stopped = 0;
    while (stopped == 0) {
        spin_for_ns(kComputingNs);
        MPI_Iprobe(kOrigin, kStopTag, comm, &stopped, MPI_STATUS_IGNORE);
    }
    MPI_Recv(nullptr, 0, MPI_BYTE, kOrigin, kStopTag, comm, MPI_STATUS_IGNORE);
}

template <class Op, bool kApart = false>
void run_computing(const Context& c, const std::string& name) {
    const Plan plan = hot_plan(kWindowBytes);
    WindowSet set(Flavour::allocate, 1, kWindowBytes, c.comm);
    Op op(plan);
    if (c.target()) {
        set.own_begin();
        op.prepare(set.memory(0), 0);
        set.own_end();
    }
    MPI_Barrier(c.comm);
    std::uint64_t runs = 0;
    const auto once = [&] { op.issue(set.window(0), 0, 0, runs++); };
    Timing timing;
    if (c.origin()) {
        if (!Op::kOwnEpoch) set.lock_all();
        // While the target waits in the next barrier: makes connections and takes locks before the target computes.
        for (int i = 0; i < kWarmUps; ++i)
            once();
    }
    MPI_Barrier(c.comm);
    if (c.origin()) {
        timing = kApart ? sampled_apart(c.brief, once) : sampled(c.brief, once);
        MPI_Send(nullptr, 0, MPI_BYTE, kTarget, kStopTag, c.comm);
    }
    if (c.target()) compute_until_told(c.comm);
    MPI_Barrier(c.comm);
    if (c.origin() && !Op::kOwnEpoch) set.unlock_all();
    runs = c.agree(runs);
    bool right = true;
    if (c.origin()) right = op.origin_right(0, runs);
    if (c.target()) {
        set.own_begin();
        right = op.target_right(set.memory(0), 0, runs);
        set.own_end();
    }
    c.report(name, timing, right);
}

// The figure is the processor time that the busiest process takes while all of them sleep.
void run_idle(const Context& c, const std::string& name) {
    WindowSet set(Flavour::allocate, 1, kWindowBytes, c.comm);
    const std::uint64_t mine = stamp(static_cast<std::size_t>(c.rank), 0);
    const int right_hand = (c.rank + 1) % c.ranks;
    const int left_hand = (c.rank + c.ranks - 1) % c.ranks;
    set.lock_all();
    MPI_Put(&mine, 8, MPI_BYTE, right_hand, 0, 8, MPI_BYTE, set.window(0));
    MPI_Win_flush(right_hand, set.window(0));
    set.unlock_all();
    MPI_Barrier(c.comm);
    const double before = cpu_ns();
    sleep_ns(idle_ns(c.brief));
    double took = cpu_ns() - before;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, c.comm);
    set.own_begin();
    const bool right = Base::word(set.memory(0)) == stamp(static_cast<std::size_t>(left_hand), 0);
    set.own_end();
    c.report(name, summarise({took}, 1), right);
}

template <class Op>
void add(Measures& list, const std::string& operation) {
    list.push_back({"computing." + operation, run_computing<Op>});
}

template <class Op>
void add_cold(Measures& list, const std::string& operation) {
    list.push_back({"cold." + operation, run_computing<Op, true>});
}

}  // namespace

void add_net_computing_measures(Measures& list) {
    add<Flushed<Put>>(list, "put8");
    add<Flushed<Get>>(list, "get8");
    add<Flushed<FetchAndOp>>(list, "fop");
    add<Flushed<CompareAndSwap>>(list, "cas");
    add<Flushed<Accumulate>>(list, "acc8");
    add_cold<Flushed<Put>>(list, "put8");
    add_cold<Flushed<FetchAndOp>>(list, "fop");
    add_cold<Flushed<Accumulate>>(list, "acc8");
    add_cold<Locked<Put>>(list, "lock_put");
}

void add_net_idle_measures(Measures& list) {
    list.push_back({"idle_cpu", run_idle});
}

}  // namespace bench
