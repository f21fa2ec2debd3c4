// Adjacent accesses: a write never changes the bytes beside it while other processes access those. Also loads and
// stores under locks and after sync, overlapping accumulates, and request-based operations mixed with plain ones.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Accumulate", "MPI_Raccumulate", "MPI_Rget_accumulate", "MPI_Win_lock",
             "MPI_Win_sync", "MPI_Win_shared_query", "MPI_Win_allocate_shared")

// The owner loads and stores each second 16-bit word while all others add to the words between.
CASE(stores_between_accumulates) {
    constexpr std::size_t kWords = 64;
    constexpr int kRounds = 50;
    MPI_Datatype odd;
    MPI_Type_vector(kWords / 2, 1, 2, MPI_SHORT, &odd);
    MPI_Type_commit(&odd);
    const std::vector<short> ones(kWords / 2, 1);
    for (WindowKind kind : kAllWindowKinds) {
        Window win(kind, kWords * sizeof(short));
        volatile short* const own = win.base<short>();
        MPI_Win_lock_all(0, win);
        for (short round = 1; round <= kRounds; ++round) {
            for (std::size_t i = 0; i < kWords; i += 2)
                own[i] = static_cast<short>(-round);
            for (int target = 0; target < size(); ++target)
                CHECK_OK(MPI_Accumulate(ones.data(), kWords / 2, MPI_SHORT, target, win.at(target, sizeof(short)), 1,
                                        odd, MPI_SUM, win));
            MPI_Win_flush_all(win);
            for (std::size_t i = 0; i < kWords; i += 2)
                CHECK_EQ(static_cast<int>(own[i]), -round);
        }
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_ALL(win.base<short>(), kWords, [](std::size_t i) { return i % 2 ? kRounds * size() : -kRounds; });
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&odd);
}

// All processes put different bytes to the same location. Its value is undefined, but no byte around it changes.
CASE_BY_KIND(conflicting_puts) {
    constexpr std::size_t kBytes = 64, kFirst = 19, kLength = 23;
    Window win(kind, kBytes);
    std::fill_n(win.base<char>(), kBytes, 'g');
    const std::vector<char> out(kLength, static_cast<char>('A' + rank()));
    MPI_Win_fence(0, win);
    const int n = kLength;
    for (int round = 0; round < 100; ++round)
        CHECK_OK(MPI_Put(out.data(), n, MPI_CHAR, 0, win.at(0, kFirst), n, MPI_CHAR, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    const char* const bytes = win.base<char>();
    CHECK_ALL(bytes, kFirst, [](std::size_t) { return 'g'; });
    CHECK_ALL(bytes + kFirst + kLength, kBytes - kFirst - kLength, [](std::size_t) { return 'g'; });
    // Each byte has a value that some process wrote.
    if (rank() == 0)
        for (std::size_t i = kFirst; i < kFirst + kLength; ++i)
            CHECK(bytes[i] >= 'A' && bytes[i] < 'A' + size());
}

CASE_BY_KIND(accumulates_that_overlap) {
    constexpr std::size_t kLongs = 40;
    Window win(kind, kLongs * sizeof(long));
    const std::vector<long> ones(kLongs, 1);
    MPI_Win_fence(0, win);
    // Pieces [k, k + 10) for k = 0 to 30.
    for (std::size_t k = 0; k + 10 <= kLongs; ++k)
        CHECK_OK(MPI_Accumulate(ones.data(), 10, MPI_LONG, right(), win.at(right(), k * sizeof(long)), 10, MPI_LONG,
                                MPI_SUM, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_ALL(win.base<long>(), kLongs, [](std::size_t i) {
        const std::size_t first = i < 10 ? 0 : i - 9;
        const std::size_t last = i < 30 ? i : 30;
        return static_cast<long>(last - first + 1);
    });
}

// The process holds an exclusive lock on a peer with mapped memory when MPI_Win_lock returns, so counting by plain
// loads and stores through the pointer is exact.
CASE(stores_to_peers_under_a_lock) {
    SKIP_IF(!osct::shares_memory(MPI_COMM_WORLD));
    constexpr long kRounds = 300;
    long* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    base[0] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<volatile long*> peers(static_cast<std::size_t>(size()));
    for (int peer = 0; peer < size(); ++peer) {
        MPI_Aint bytes = 0;
        int unit = 0;
        long* there = nullptr;
        CHECK_OK(MPI_Win_shared_query(win, peer, &bytes, &unit, &there));
        peers[static_cast<std::size_t>(peer)] = there;
    }
    for (long i = 0; i < kRounds; ++i) {
        const int target = static_cast<int>(i) % size();
        volatile long* const counter = peers[static_cast<std::size_t>(target)];
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        *counter = *counter + 1;
        MPI_Win_unlock(target, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win);
    const long turns = kRounds / size() + (rank() < kRounds % size() ? 1 : 0);
    CHECK_EQ(base[0], turns * size());
    MPI_Win_unlock(rank(), win);
    MPI_Win_free(&win);
}

// Data, sync, flag at the writer; flag, sync, data at the reader.
CASE(sync_orders_loads_and_stores) {
    SKIP_IF(size() < 2);
    SKIP_IF(!osct::shares_memory(MPI_COMM_WORLD));
    constexpr long kRounds = 300;
    long* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate_shared(rank() == 0 ? 4096 : 0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Aint bytes = 0;
    int unit = 0;
    long* first = nullptr;
    CHECK_OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &first));
    if (rank() == 0) std::fill_n(first, 512, 0L);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    volatile long *const flag = first, *const answer = first + 64, *const data = first + 128;
    for (long round = 1; round <= kRounds && rank() < 2; ++round) {
        if (rank() == 0) {
            for (int i = 0; i < 8; ++i)
                data[i * 16] = round * 10 + i;
            MPI_Win_sync(win);
            *flag = round;
            while (*answer != round)
                MPI_Win_sync(win);
        } else {
            while (*flag != round)
                MPI_Win_sync(win);
            MPI_Win_sync(win);
            for (int i = 0; i < 8; ++i)
                CHECK_EQ(static_cast<long>(data[i * 16]), round * 10 + i);
            MPI_Win_sync(win);
            *answer = round;
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

// Request-based operations are atomic and ordered with plain ones: all tickets differ, and the operations of one origin
// at one location take effect in program order.
CASE_BY_KIND(requests_are_atomic_and_ordered) {
    constexpr int kEach = 100;
    Window win(kind, 64 + 8 * static_cast<std::size_t>(size()));
    const long one = 1;
    long sum = 0;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < kEach; ++i) {
        MPI_Request requests[3];
        long ticket = -1, seen = -1;
        const long value = i * 3 + 1, later = value + 1;
        const MPI_Aint own = win.at(0, 64 + 8 * static_cast<std::size_t>(rank()));
        CHECK_OK(MPI_Rget_accumulate(&one, 1, MPI_LONG, &ticket, 1, MPI_LONG, 0, win.at(0, 0), 1, MPI_LONG, MPI_SUM,
                                     win, &requests[0]));
        CHECK_OK(MPI_Raccumulate(&value, 1, MPI_LONG, 0, own, 1, MPI_LONG, MPI_REPLACE, win, &requests[1]));
        CHECK_OK(MPI_Accumulate(&later, 1, MPI_LONG, 0, own, 1, MPI_LONG, MPI_REPLACE, win));
        CHECK_OK(MPI_Rget_accumulate(nullptr, 0, MPI_LONG, &seen, 1, MPI_LONG, 0, own, 1, MPI_LONG, MPI_NO_OP, win,
                                     &requests[2]));
        CHECK_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        MPI_Win_flush(0, win);
        CHECK_EQ(seen, later);
        sum += ticket;
    }
    MPI_Win_unlock_all(win);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    const long all = static_cast<long>(kEach) * size();
    CHECK_EQ(sum, all * (all - 1) / 2);
}

// Unlock completes the operation, not its request, which a wait of its own ends without error.
CASE(requests_outlive_their_epoch) {
    Window win(WindowKind::Allocate, 64);
    const int out = rank() + 80;
    int in = -1;
    MPI_Request requests[2];
    MPI_Win_lock_all(0, win);
    CHECK_OK(MPI_Rput(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win, &requests[0]));
    CHECK_OK(MPI_Win_flush(right(), win));
    CHECK_OK(MPI_Rget(&in, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win, &requests[1]));
    MPI_Win_unlock_all(win);
    for (MPI_Request& request : requests) {
        CHECK(request != MPI_REQUEST_NULL);
        MPI_Status status;
        status.MPI_ERROR = MPI_SUCCESS;
        int cancelled = 1;
        CHECK_OK(MPI_Wait(&request, &status));
        CHECK(request == MPI_REQUEST_NULL);
        CHECK_EQ(status.MPI_ERROR, MPI_SUCCESS);
        CHECK_OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK_EQ(cancelled, 0);
    }
    CHECK_EQ(in, rank() + 80);
    MPI_Barrier(MPI_COMM_WORLD);
}
