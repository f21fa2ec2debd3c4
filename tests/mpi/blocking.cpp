// Which calls block: fences, starts, completes and frees wait for what the standard requires and for no more; epochs to
// MPI_PROC_NULL do not wait; one-sided and two-sided communication complete independently.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Win_fence", "MPI_Win_start", "MPI_Win_post", "MPI_Win_complete",
             "MPI_Win_wait", "MPI_Win_lock", "MPI_Win_free")

namespace {

constexpr double kLate = 0.02;

}  // namespace

// No process leaves a fence before all have entered it: each announces its entry by a put that only its fence
// completes. Operations of the next epoch do not reach a target before it has entered the fence.
CASE_BY_KIND(fences_wait_for_all_processes) {
    const auto ranks = static_cast<std::size_t>(size());
    Window win(kind, 2 * ranks * sizeof(int));
    const int* const came = win.base<int>();
    volatile const int* const next = came + size();
    MPI_Win_fence(0, win);
    for (int round = 1; round <= 2 * size(); ++round) {
        const bool late = round % size() == rank();
        if (late) osct::compute(kLate / 4);
        const auto own = static_cast<std::size_t>(rank()) * sizeof(int);
        for (int target = 0; target < size(); ++target)
            CHECK_OK(MPI_Put(&round, 1, MPI_INT, target, win.at(target, own), 1, MPI_INT, win));
        if (late) osct::compute(kLate / 4);
        // The others are in the fence or behind it, and must not write here yet.
        for (int origin = 0; late && origin < size(); ++origin)
            CHECK_EQ(static_cast<int>(next[origin]), round - 1);
        MPI_Win_fence(0, win);
        CHECK_ALL(came, ranks, [&](std::size_t) { return round; });
        for (int target = 0; target < size(); ++target)
            CHECK_OK(MPI_Put(&round, 1, MPI_INT, target, win.at(target, own + ranks * sizeof(int)), 1, MPI_INT, win));
        MPI_Win_fence(0, win);
    }
    MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, win);
}

// Every assert that is true changes nothing, one by one and all together.
CASE_BY_KIND(true_asserts_change_nothing) {
    Window win(kind, 64);
    int round = 0;
    for (const int before : {0, static_cast<int>(MPI_MODE_NOPRECEDE), MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE}) {
        for (const int after :
             {0, static_cast<int>(MPI_MODE_NOSUCCEED), static_cast<int>(MPI_MODE_NOSTORE),
              static_cast<int>(MPI_MODE_NOPUT), MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE | MPI_MODE_NOPUT}) {
            const int out = rank() * 100 + ++round;
            CHECK_OK(MPI_Win_fence(before, win));
            CHECK_OK(MPI_Put(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
            CHECK_OK(MPI_Win_fence(after, win));
            CHECK_EQ(win.base<int>()[0], left() * 100 + round);
            MPI_Barrier(MPI_COMM_WORLD);
            CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, win));
        }
    }
    const Group to(right()), from(left());
    for (const int exposure : {0, static_cast<int>(MPI_MODE_NOSTORE), static_cast<int>(MPI_MODE_NOCHECK),
                               MPI_MODE_NOCHECK | MPI_MODE_NOSTORE}) {
        const int out = rank() * 100 + ++round, access = exposure & MPI_MODE_NOCHECK;
        CHECK_OK(MPI_Win_post(from, exposure, win));
        if (access != 0) MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_start(to, access, win));
        CHECK_OK(MPI_Put(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_complete(win));
        CHECK_OK(MPI_Win_wait(win));
        CHECK_EQ(win.base<int>()[0], left() * 100 + round);
    }
}

// The origin is right whether it starts long before the post or long after it.
CASE_BY_KIND(starts_before_and_after_the_post) {
    SKIP_IF(size() < 2);
    Window win(kind, 64);
    for (int round = 1; round <= 4; ++round) {
        const bool early = round % 2 == 0;
        if (rank() == 0) {
            const Group origin(1);
            if (early) osct::compute(kLate);
            win.base<int>()[1] = round * 5;  // what the origin reads is what was there at the post
            MPI_Win_post(origin, 0, win);
            MPI_Win_wait(win);
            CHECK_EQ(win.base<int>()[0], round);
            win.base<int>()[1] = -1;
        } else if (rank() == 1) {
            const Group target(0);
            if (!early) osct::compute(kLate);
            int seen = 0;
            MPI_Win_start(target, 0, win);
            CHECK_OK(MPI_Put(&round, 1, MPI_INT, 0, win.at(0, 0), 1, MPI_INT, win));
            CHECK_OK(MPI_Get(&seen, 1, MPI_INT, 0, win.at(0, 4), 1, MPI_INT, win));
            CHECK_OK(MPI_Win_complete(win));
            CHECK_EQ(seen, round * 5);
        }
    }
}

// The target calls wait only after a message that the origin sends behind its complete: complete waits for no wait.
CASE_BY_KIND(complete_does_not_wait_for_the_target) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the standard allows it to wait, and the host may");
    Window win(kind, 64);
    if (rank() == 0) {
        const Group origin(1);
        MPI_Win_post(origin, 0, win);
        MPI_Recv(nullptr, 0, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_wait(win);
        CHECK_EQ(win.base<int>()[0], 31);
    } else if (rank() == 1) {
        const Group target(0);
        int out = 31;
        MPI_Win_start(target, 0, win);
        CHECK_OK(MPI_Put(&out, 1, MPI_INT, 0, win.at(0, 0), 1, MPI_INT, win));
        MPI_Win_complete(win);
        out = 99;  // complete at the origin: the buffer is the program's again
        MPI_Send(nullptr, 0, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
}

// After MPI_Win_free returns, no other process accesses the memory, however late its last access was.
CASE(frees_wait_for_late_accesses) {
    for (int round = 0; round < 4; ++round) {
        std::vector<int> own(static_cast<std::size_t>(size()), -1);
        MPI_Win win;
        MPI_Win_create(own.data(), static_cast<MPI_Aint>(own.size() * sizeof(int)), sizeof(int), MPI_INFO_NULL,
                       MPI_COMM_WORLD, &win);
        if (rank() != round % size()) osct::compute(kLate / size());
        for (int target = 0; target < size(); ++target) {
            const int out = rank() + round;
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
            CHECK_OK(MPI_Put(&out, 1, MPI_INT, target, rank(), 1, MPI_INT, win));
            MPI_Win_unlock(target, win);
        }
        CHECK_OK(MPI_Win_free(&win));
        CHECK_ALL(own.data(), own.size(), [&](std::size_t i) { return static_cast<int>(i) + round; });
    }
}

CASE(epochs_to_proc_null) {
    Window win(WindowKind::Allocate, 64);
    int value = 4;
    for (const int type : {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE}) {
        CHECK_OK(MPI_Win_lock(type, MPI_PROC_NULL, 0, win));
        CHECK_OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
        CHECK_OK(MPI_Win_flush(MPI_PROC_NULL, win));
        CHECK_OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
        CHECK_OK(MPI_Win_unlock(MPI_PROC_NULL, win));
    }
    // Beside an epoch that has a target, which goes on.
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win);
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
    CHECK_OK(MPI_Win_flush(MPI_PROC_NULL, win));
    CHECK_OK(MPI_Win_flush(right(), win));
    CHECK_OK(MPI_Win_unlock(right(), win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.base<int>()[0], 4);
}

// A flush, an unlock and a fence leave a receive open; messages inside an epoch neither end nor need it.
CASE_BY_KIND(messages_and_epochs_complete_independently) {
    Window win(kind, 64);
    MPI_Request request;
    int in = -1, done = 1;
    const int out = rank() + 60;
    MPI_Irecv(&in, 1, MPI_INT, left(), 3, MPI_COMM_WORLD, &request);
    MPI_Win_lock_all(0, win);
    CHECK_OK(MPI_Put(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
    CHECK_OK(MPI_Win_flush_all(win));
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    CHECK_EQ(done, 0);
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    CHECK_EQ(done, 0);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, win);
    MPI_Send(&out, 1, MPI_INT, right(), 3, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQ(in, left() + 60);
    // The epoch is open still.
    int back = -1;
    CHECK_OK(MPI_Get(&back, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
    CHECK_OK(MPI_Win_unlock(right(), win));
    CHECK_EQ(back, rank() + 60);
    MPI_Barrier(MPI_COMM_WORLD);
}
