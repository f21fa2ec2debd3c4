// With OSC_CHECK=1 a false assert is an error of the call that finds it, and a true one is not. In both cases the data
// is the same as without asserts.
#include <string>
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_fence", "MPI_Win_post", "MPI_Win_start", "MPI_Win_lock", "MPI_Win_lock_all",
             "MPI_Put", "MPI_Accumulate", "MPI_Win_test")

namespace {

// A long for each process.
struct Longs : Returning {
    Longs() : Returning(WindowKind::Allocate, static_cast<std::size_t>(size()) * sizeof(long)) {}
    // This process's own long at `target`.
    void put(int target, long value) {
        kept_.push_back(value);
        MPI_Put(&kept_.back(), 1, MPI_LONG, target, at(target, mine()), 1, MPI_LONG, handle());
    }
    std::size_t mine() const { return static_cast<std::size_t>(rank()) * sizeof(long); }
    long of(int origin) const { return base<long>()[origin]; }

  private:
    std::vector<long> kept_ = reserved();
    static std::vector<long> reserved() {
        std::vector<long> room;
        room.reserve(64);
        return room;
    }
};

}  // namespace

CASE(true_asserts_are_no_errors) {
    Longs win;
    const Group origins(left());
    const Group targets(right());
    for (long turn = 1; turn <= 20; ++turn) {
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        win.put(right(), turn);
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, win));
        CHECK_EQ(win.of(left()), turn);
        CHECK_OK(MPI_Win_post(origins, 0, win));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_start(targets, MPI_MODE_NOCHECK, win));
        win.put(right(), -turn);
        CHECK_OK(MPI_Win_complete(win));
        CHECK_OK(MPI_Win_wait(win));
        CHECK_EQ(win.of(left()), -turn);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), MPI_MODE_NOCHECK, win));
    CHECK_OK(MPI_Win_unlock(rank(), win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    win.put(right(), 7);
    CHECK_OK(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE(operations_before_a_fence_that_denies_them) {
    Longs win;
    CHECK_OK(MPI_Win_fence(0, win));
    if (rank() == 0) win.put(size() - 1, 5);
    const int error = MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    CHECK_EQ(osct::error_class(error), rank() == 0 ? MPI_ERR_ASSERT : MPI_SUCCESS);
    if (rank() == size() - 1) CHECK_EQ(win.of(0), 5L);
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

CASE(asserts_that_not_all_processes_give) {
    SKIP_IF(size() < 2);
    Longs win;
    const bool first = rank() == 0;
    CHECK_EQ(osct::error_class(MPI_Win_fence(first ? MPI_MODE_NOPRECEDE : 0, win)), MPI_ERR_ASSERT);
    win.put(right(), 3);
    CHECK_EQ(osct::error_class(MPI_Win_fence(first ? 0 : MPI_MODE_NOSUCCEED, win)), MPI_ERR_ASSERT);
    CHECK_EQ(win.of(left()), 3L);
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

// The fence or wait that ends the epoch reports the update, in the process that gave MPI_MODE_NOPUT. Gets are no
// updates.
CASE(updates_against_a_promise) {
    Longs win;
    const long one = 1;
    const int target = size() - 1;
    for (const bool accumulates : {false, true}) {
        CHECK_OK(MPI_Win_fence(rank() == target ? MPI_MODE_NOPUT : 0, win));
        long got = 0;
        MPI_Get(&got, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, win);
        CHECK_OK(MPI_Win_fence(rank() == target ? MPI_MODE_NOPUT : 0, win));
        if (rank() == 0) {
            if (accumulates)
                MPI_Accumulate(&one, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, MPI_SUM, win);
            else
                win.put(target, 41);
        }
        const int error = MPI_Win_fence(0, win);
        CHECK_EQ(osct::error_class(error), rank() == target ? MPI_ERR_ASSERT : MPI_SUCCESS);
        if (rank() == target) CHECK_EQ(win.of(0), accumulates ? 42L : 41L);
    }
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    const Group origins(left());
    const Group targets(right());
    for (const bool tests : {false, true}) {
        CHECK_OK(MPI_Win_post(origins, MPI_MODE_NOPUT, win));
        CHECK_OK(MPI_Win_start(targets, 0, win));
        win.put(right(), 9);
        CHECK_OK(MPI_Win_complete(win));
        int error = MPI_SUCCESS;
        int done = tests ? 0 : 1;
        while (done == 0 && error == MPI_SUCCESS)
            error = MPI_Win_test(win, &done);
        CHECK_EQ(done, 1);
        if (!tests) error = MPI_Win_wait(win);
        CHECK_EQ(osct::error_class(error), MPI_ERR_ASSERT);
        CHECK_EQ(win.of(left()), 9L);
    }
}

CASE(a_start_before_the_post) {
    SKIP_IF(size() < 2);
    Longs win;
    if (rank() == 0) {
        const Group target(1);
        const int error = MPI_Win_start(target, MPI_MODE_NOCHECK, win);
        CHECK_EQ(osct::error_class(error), osct::same_node(1) ? MPI_ERR_ASSERT : MPI_SUCCESS);
        MPI_Barrier(MPI_COMM_WORLD);
        win.put(1, 6);
        CHECK_OK(MPI_Win_complete(win));
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 1) {
            const Group origin(0);
            CHECK_OK(MPI_Win_post(origin, MPI_MODE_NOCHECK, win));
            CHECK_OK(MPI_Win_wait(win));
            CHECK_EQ(win.of(0), 6L);
        }
    }
}

// What a process can see: locks of its own node.
CASE(locks_that_another_holds) {
    SKIP_IF(size() < 2);
    Longs win;
    const bool seen = osct::same_node(0);
    if (rank() == 0) CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank() == 1) {
        // The holder releases the lock some time later: MPI_Win_lock waits for it in spite of the assert.
        MPI_Isend(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        const int error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, MPI_MODE_NOCHECK, win);
        CHECK_EQ(osct::error_class(error), seen ? MPI_ERR_ASSERT : MPI_SUCCESS);
        win.put(0, 8);
        CHECK_OK(MPI_Win_unlock(0, win));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank() == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        osct::compute(0.3);
        CHECK_EQ(win.of(1), 0L);
        CHECK_OK(MPI_Win_unlock(0, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK_EQ(win.of(1), 8L);
}

// The assert is false only later, when no call can see it any more: the exclusive lock must not wait for the epoch.
CASE(exclusive_lock_during_lock_all_without_locks) {
    SKIP_IF(size() < 2);
    Longs win;
    if (rank() == 0) CHECK_OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 1) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        win.put(0, 9);
        CHECK_OK(MPI_Win_unlock(0, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK_OK(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK_EQ(win.of(1), 9L);
}
