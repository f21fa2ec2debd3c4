// allocate_shared, contiguous and not, and shared_query on every window that has memory of loads and stores.
#include <unistd.h>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate_shared", "MPI_Win_shared_query", "MPI_Win_sync", "MPI_Win_allocate")

namespace {

// Each rank has rank + 1 longs; all ranks load the values that the others stored. `contiguous`: so the segments must
// be.
void shared_with(const char* noncontiguous, bool contiguous) {
    const Info info{{"alloc_shared_noncontig", noncontiguous}};
    long* base = nullptr;
    MPI_Win win;
    const MPI_Aint bytes = static_cast<MPI_Aint>(sizeof(long)) * (rank() + 1);
    CHECK_OK(MPI_Win_allocate_shared(bytes, static_cast<int>(sizeof(long)), info, MPI_COMM_WORLD, &base, &win));
    MPI_Win_lock_all(0, win);
    for (int i = 0; i <= rank(); ++i)
        base[i] = rank() * 100 + i;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    const char* end_of_last = nullptr;
    for (int peer = 0; peer < size(); ++peer) {
        MPI_Aint peer_bytes = -1;
        int unit = -1;
        long* there = nullptr;
        CHECK_OK(MPI_Win_shared_query(win, peer, &peer_bytes, &unit, &there));
        CHECK_EQ(peer_bytes, static_cast<MPI_Aint>(sizeof(long)) * (peer + 1));
        CHECK_EQ(unit, static_cast<int>(sizeof(long)));
        CHECK_ALL(there, static_cast<std::size_t>(peer) + 1,
                  [&](std::size_t i) { return peer * 100 + static_cast<long>(i); });
        if (peer == rank()) CHECK(there == base);
        const char* begin = static_cast<const char*>(static_cast<const void*>(there));
        if (contiguous && end_of_last) CHECK(begin == end_of_last);
        end_of_last = begin + peer_bytes;
        // A query for MPI_PROC_NULL returns the lowest rank with memory.
        if (peer == 0) {
            long* first = nullptr;
            CHECK_OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &peer_bytes, &unit, &first));
            CHECK(first == there);
            CHECK_EQ(peer_bytes, static_cast<MPI_Aint>(sizeof(long)));
        }
    }
    MPI_Win_unlock_all(win);
    CHECK_OK(MPI_Win_free(&win));
}

}  // namespace

// Between hosts there is no such window; the case allocated_window tests queries of allocated windows there.
CASE(contiguous) {
    SKIP_IF(!osct::shares_memory(MPI_COMM_WORLD));
    shared_with("false", true);
}
CASE(noncontiguous) {
    SKIP_IF(!osct::shares_memory(MPI_COMM_WORLD));
    shared_with("true", false);
}
// Rank 0 permits other places, the others do not.
CASE(contiguous_if_one_rank_asks) {
    SKIP_IF(size() < 2 || !osct::shares_memory(MPI_COMM_WORLD));
    HOST_CANNOT("it hangs or mixes both layouts");
    shared_with(rank() == 0 ? "true" : "false", true);
}

// libosc does not see loads and stores, so every fence of a shared window is a barrier.
CASE(an_opening_fence_orders_stores_and_loads) {
    SKIP_IF(!osct::served_by_osc() || !osct::shares_memory(MPI_COMM_WORLD));
    long* base = nullptr;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate_shared(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    MPI_Aint bytes = 0;
    int unit = 0;
    long* next = nullptr;
    CHECK_OK(MPI_Win_shared_query(win, right(), &bytes, &unit, &next));
    for (long turn = 1; turn <= 200; ++turn) {
        if (turn % size() == rank()) usleep(100);
        *base = turn;
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        CHECK_EQ(*next, turn);
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    }
    CHECK_OK(MPI_Win_free(&win));
}

CASE(proc_null_means_the_first_rank_with_memory) {
    SKIP_IF(!osct::shares_memory(MPI_COMM_WORLD));
    SKIP_IF(size() < 3);
    int* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate_shared(rank() < 2 ? 0 : 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    int *nobody = nullptr, *two = nullptr;
    MPI_Aint bytes = 0;
    int unit = 0;
    CHECK_OK(MPI_Win_shared_query(win, 2, &bytes, &unit, &two));
    CHECK_OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &nobody));
    CHECK(nobody == two);
    CHECK_EQ(bytes, MPI_Aint{64});
    MPI_Win_free(&win);
}

// Programs of the MPICH test suite rely on the null pointer.
CASE(a_process_without_memory_has_no_address) {
    SKIP_IF(!osct::shares_memory(MPI_COMM_WORLD));
    SKIP_IF(size() < 2);
    const Info info{{"alloc_shared_noncontig", "true"}};
    int* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate_shared(rank() % 2 == 0 ? 64 : 0, 4, info, MPI_COMM_WORLD, &base, &win);
    for (int peer = 0; peer < size(); ++peer) {
        MPI_Aint bytes = -1;
        int unit = 0;
        int* there = nullptr;
        CHECK_OK(MPI_Win_shared_query(win, peer, &bytes, &unit, &there));
        CHECK_EQ(bytes, MPI_Aint{peer % 2 == 0 ? 64 : 0});
        CHECK_EQ(there != nullptr, peer % 2 == 0);
    }
    MPI_Win_free(&win);
}

CASE(proc_null_without_any_memory) {
    SKIP_IF(!osct::shares_memory(MPI_COMM_WORLD));
    HOST_CANNOT("the host alone fails to make such a window");
    void* base = nullptr;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate_shared(0, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    for (int peer = -1; peer < size(); ++peer) {
        MPI_Aint bytes = -1;
        int unit = -1;
        CHECK_OK(MPI_Win_shared_query(win, peer < 0 ? MPI_PROC_NULL : peer, &bytes, &unit, &base));
        CHECK_EQ(bytes, MPI_Aint{0});
    }
    CHECK_OK(MPI_Win_free(&win));
}

CASE(allocated_window) {
    HOST_CANNOT("shared_query is refused on windows that allocate_shared did not make (MPI 4.1 admits it)");
    int* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    base[0] = rank() + 50;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (int peer = 0; peer < size(); ++peer) {
        int* there = nullptr;
        MPI_Aint bytes = -1;
        int unit = -1;
        CHECK_OK(MPI_Win_shared_query(win, peer, &bytes, &unit, &there));
        // The call reports size 0 for memory that this process cannot load and store.
        CHECK_EQ(bytes, MPI_Aint{osct::same_node(peer) ? 64 : 0});
        CHECK_EQ(unit, osct::same_node(peer) ? 4 : 1);
        CHECK_EQ(there != nullptr, osct::same_node(peer));
        if (there) CHECK_EQ(there[0], peer + 50);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

// From the query on the program loads and stores, so a lock that the window deferred is acquired.
CASE(a_query_under_a_lock) {
    HOST_CANNOT("shared_query is refused on windows that allocate_shared did not make (MPI 4.1 admits it)");
    const Info info{{"osc_lock", "deferred"}};
    long sharing = 0;
    for (int peer = 0; peer < size(); ++peer)
        sharing += osct::same_node(peer) ? 1 : 0;
    for (int round = 0; round < 10; ++round) {
        long* base = nullptr;
        MPI_Win win;
        CHECK_OK(MPI_Win_allocate(sizeof(long), 1, info, MPI_COMM_WORLD, &base, &win));
        *base = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Aint bytes = 0;
        int unit = 0;
        volatile long* counter = nullptr;
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        CHECK_OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &counter));
        if (counter != nullptr) {
            const long seen = *counter;
            ::usleep(1000);
            *counter = seen + 1;
        }
        CHECK_OK(MPI_Win_unlock(0, win));
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) CHECK_EQ(*base, sharing);
        MPI_Win_free(&win);
    }
}

// Loads after MPI_Win_start come after the target's post, and stores before MPI_Win_complete before its wait returns,
// whether the program had its pointer before or asks for it in the epoch.
CASE(loads_and_stores_between_start_and_complete) {
    HOST_CANNOT("shared_query is refused on windows that allocate_shared did not make (MPI 4.1 admits it)");
    SKIP_IF(size() < 2);
    for (int round = 0; round < 20; ++round) {
        long* base = nullptr;
        MPI_Win win;
        CHECK_OK(MPI_Win_allocate(2 * sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        base[0] = -1;
        MPI_Barrier(MPI_COMM_WORLD);
        const osct::Group other(rank() == 0 ? 1 : 0);
        MPI_Aint bytes = 0;
        int unit = 0;
        volatile long* there = nullptr;
        if (rank() == 0 && osct::same_node(1)) {
            if (round % 2 == 0) CHECK_OK(MPI_Win_shared_query(win, 1, &bytes, &unit, &there));
            CHECK_OK(MPI_Win_start(other, 0, win));
            if (round % 2 == 1) CHECK_OK(MPI_Win_shared_query(win, 1, &bytes, &unit, &there));
            there[1] = 2 * there[0];
            CHECK_OK(MPI_Win_complete(win));
        } else if (rank() == 1 && osct::same_node(0)) {
            ::usleep(1000);
            base[0] = round;
            CHECK_OK(MPI_Win_post(other, 0, win));
            CHECK_OK(MPI_Win_wait(win));
            CHECK_EQ(base[1], 2L * round);
        }
        MPI_Win_free(&win);
    }
}
