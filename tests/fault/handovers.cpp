// More ranks than cores take turns at an exclusive lock, with OSC_DEBUG=spin=0,sleep_ms=0: a waiter sleeps until it
// is woken, and no timeout repeats a wake-up, so a lost one hangs the test. The same with shared locks in between, and
// with fences and posts. The sums show that the lock excludes.
#include "../mpi/harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_fence", "MPI_Win_post", "MPI_Win_wait")

namespace {

struct Counter {
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
    Counter() {
        MPI_Win_allocate(128, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        base[0] = base[8] = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~Counter() { CHECK_OK(MPI_Win_free(&win)); }
};

long total() {
    return osct::full() ? 1000000 : 30000;
}

}  // namespace

CASE(exclusive) {
    Counter counter;
    const long each = total() / size();
    for (long i = 0; i < each; ++i) {
        long value = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, counter.win);
        MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, counter.win);
        MPI_Win_flush(0, counter.win);
        ++value;
        MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, counter.win);
        MPI_Win_unlock(0, counter.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK_EQ(counter.base[0], each * size());
    MPI_Barrier(MPI_COMM_WORLD);
}

// A reader must never see the two halves of a writer's update apart.
CASE(shared_and_exclusive) {
    Counter counter;
    const long each = total() / size() / 4;
    long wrote = 0;
    for (long i = 0; i < each; ++i) {
        long low = -1, high = -2;
        const bool writes = (i + rank()) % 4 == 0;
        MPI_Win_lock(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, counter.win);
        MPI_Get(&low, 1, MPI_LONG, 0, 0, 1, MPI_LONG, counter.win);
        MPI_Get(&high, 1, MPI_LONG, 0, 8, 1, MPI_LONG, counter.win);
        MPI_Win_flush(0, counter.win);
        CHECK_EQ(low, high);
        if (writes) {
            ++low;
            ++wrote;
            MPI_Put(&low, 1, MPI_LONG, 0, 0, 1, MPI_LONG, counter.win);
            MPI_Put(&low, 1, MPI_LONG, 0, 8, 1, MPI_LONG, counter.win);
        }
        MPI_Win_unlock(0, counter.win);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrote, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank() == 0) CHECK_EQ(counter.base[0], wrote);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Two locks crosswise: each rank takes its neighbour's, then its own is taken by the other neighbour.
CASE(every_rank_a_target) {
    Counter counter;
    const long each = total() / size() / 4;
    const long one = 1;
    for (long i = 0; i < each; ++i) {
        const int target = static_cast<int>((i * 7 + rank()) % size());
        long seen = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, counter.win);
        MPI_Fetch_and_op(&one, &seen, MPI_LONG, target, 0, MPI_SUM, counter.win);
        MPI_Win_unlock(target, counter.win);
    }
    long sum = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&counter.base[0], &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, each * size());
}

CASE(fences) {
    Counter counter;
    const long rounds = total() / 100;
    for (long i = 0; i < rounds; ++i) {
        MPI_Win_fence(0, counter.win);
        MPI_Put(&i, 1, MPI_LONG, right(), 0, 1, MPI_LONG, counter.win);
        MPI_Win_fence(0, counter.win);
        CHECK_EQ(counter.base[0], i);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, counter.win);
}

CASE(post_to_the_left_start_to_the_right) {
    Counter counter;
    const long rounds = total() / 100;
    const osct::Group from(left()), to(right());
    for (long i = 0; i < rounds; ++i) {
        MPI_Win_post(from, 0, counter.win);
        MPI_Win_start(to, 0, counter.win);
        MPI_Put(&i, 1, MPI_LONG, right(), 0, 1, MPI_LONG, counter.win);
        MPI_Win_complete(counter.win);
        MPI_Win_wait(counter.win);
        CHECK_EQ(counter.base[0], i);
    }
}
