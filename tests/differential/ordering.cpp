// Locks in order.
#include "ordering.h"

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "report.h"
#include "steps.h"

namespace diff {
namespace {

int this_rank() {
    int me = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    return me;
}

int rank_count() {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/// A window of one counter for each process. The host mis-addresses sizes that are no multiple of 16.
class Counter {
  public:
    explicit Counter(const char* lock_mode) {
        MPI_Info info = MPI_INFO_NULL;
        MPI_Info_create(&info);
        MPI_Info_set(info, "osc_lock", lock_mode);
        check_call(MPI_Win_allocate(64, sizeof(long), info, MPI_COMM_WORLD, &base_, &win_), "MPI_Win_allocate");
        MPI_Info_free(&info);
        *base_ = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~Counter() { check_call(MPI_Win_free(&win_), "MPI_Win_free"); }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;

    void lock(int target) const { check_call(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win_), "MPI_Win_lock"); }
    void unlock(int target) const { check_call(MPI_Win_unlock(target, win_), "MPI_Win_unlock"); }
    /// Not atomically.
    void increment(int target) const {
        long value = 0;
        MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win_);
        check_call(MPI_Win_flush(target, win_), "MPI_Win_flush");
        ++value;
        MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win_);
        check_call(MPI_Win_flush(target, win_), "MPI_Win_flush");
    }
    /// Behind a barrier.
    void check(long want, const char* what) const {
        if (*base_ != want) fail("the counter is %ld, not %ld, after %s", *base_, want, what);
    }

  private:
    MPI_Win win_ = MPI_WIN_NULL;
    long* base_ = nullptr;
};

const char* mode(Random& random) {
    return random.pick<const char*>({"auto", "deferred", "immediate"});
}

void hesitate(Random& jitter) {
    if (!jitter.once_in(3)) return;
    const timespec pause{0, 50000};
    ::nanosleep(&pause, nullptr);
}

}  // namespace

void ordered_locks(Random& random, Random& jitter) {
    const char* const modes[] = {mode(random), mode(random)};
    if (!steps().take([] { return "ordered locks"; })) return;
    context().sync = "ordered locks";
    const int size = rank_count();
    const Counter counters[] = {Counter(modes[0]), Counter(modes[1])};
    const int places = 2 * size;
    std::vector<std::int64_t> mine(static_cast<std::size_t>(places)), all(mine.size());
    for (int round = 0; round < 10; ++round) {
        std::vector<int> taken;  // the lock 2 * target + window
        for (int place = 0; place < places; ++place) {
            if (jitter.once_in(3)) continue;
            counters[place % 2].lock(place / 2);
            taken.push_back(place);
            hesitate(jitter);
        }
        for (auto place = taken.rbegin(); place != taken.rend(); ++place) {
            counters[*place % 2].increment(*place / 2);
            ++mine[static_cast<std::size_t>(*place)];
        }
        for (const int place : taken)
            counters[place % 2].unlock(place / 2);
    }
    MPI_Allreduce(mine.data(), all.data(), places, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int window = 0; window < 2; ++window)
        counters[window].check(static_cast<long>(all[static_cast<std::size_t>(2 * this_rank() + window)]),
                               "counting under several exclusive locks");
    MPI_Barrier(MPI_COMM_WORLD);
}

void blocked_thread(Random& random) {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE || rank_count() < 3) return;
    if (!steps().take([] { return "a blocked thread"; })) return;
    context().sync = "a blocked thread";
    const Counter counter(mode(random));
    const int me = this_rank();
    const auto count = [&](int target) {
        counter.lock(target);
        counter.increment(target);
        counter.unlock(target);
    };
    if (me == 0) counter.lock(0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        counter.unlock(0);
    } else if (me == 1) {
        std::thread blocked([&] { count(0); });
        const timespec pause{0, 2000000};
        ::nanosleep(&pause, nullptr);
        std::thread([&] { count(2); }).join();
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        blocked.join();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    counter.check(me == 0 || me == 2 ? 1 : 0, "locks of two threads");
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace diff
