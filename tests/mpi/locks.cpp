// Passive-target locks: mutual exclusion, shared readers, several targets at once, NOCHECK, epochs without operations.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Put",
             "MPI_Get", "MPI_Win_flush", "MPI_Win_flush_local")

// A counter that is read, then written by separate calls: only the lock keeps increments apart.
CASE_BY_KIND(exclusive_excludes) {
    const int rounds = osct::full() ? 2000 : 200;
    Window win(kind, 64);
    for (int i = 0; i < rounds; ++i) {
        const int target = i % size();
        long value[4];
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        MPI_Get(value, 4, MPI_LONG, target, win.at(target, 0), 4, MPI_LONG, win);
        CHECK_OK(i % 2 ? MPI_Win_flush(target, win) : MPI_Win_flush_local(target, win));
        CHECK(value[0] == value[1] && value[1] == value[2] && value[2] == value[3]);
        for (long& v : value)
            ++v;
        MPI_Put(value, 4, MPI_LONG, target, win.at(target, 0), 4, MPI_LONG, win);
        CHECK_OK(MPI_Win_unlock(target, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win);
    const long wanted = static_cast<long>(rounds / size() + (rank() < rounds % size() ? 1 : 0)) * size();
    CHECK_ALL(win.base<long>(), 4u, [&](std::size_t) { return wanted; });
    MPI_Win_unlock(rank(), win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// MPICH and Open MPI run it, against the rule of section 12.5.4: the flush has nothing to complete.
CASE_BY_KIND(flushes_of_unlocked_targets) {
    SKIP_IF(size() < 2);
    Window win(kind, 64);
    const int target = right(), origin = left();
    for (const int lock : {MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE}) {
        const long out = 10 * lock + rank();
        CHECK_OK(MPI_Win_lock(lock, target, 0, win));
        CHECK_OK(MPI_Put(&out, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, win));
        for (int other = 0; other < size(); ++other) {
            CHECK_OK(MPI_Win_flush(other, win));
            CHECK_OK(MPI_Win_flush_local(other, win));
        }
        CHECK_OK(MPI_Win_unlock(target, win));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(win.base<long>()[0], 10 * lock + origin);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// The owner's own loads and stores under a lock on itself take part in the exclusion.
CASE_BY_KIND(lock_on_self_is_held_when_it_returns) {
    Window win(kind, 64);
    constexpr long kRounds = 200;
    for (long i = 0; i < kRounds; ++i) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        if (rank() == 0) {
            volatile long* counter = win.base<long>();
            *counter = *counter + 1;
        } else {
            long value = 0;
            MPI_Get(&value, 1, MPI_LONG, 0, win.at(0, 0), 1, MPI_LONG, win);
            MPI_Win_flush(0, win);
            ++value;
            MPI_Put(&value, 1, MPI_LONG, 0, win.at(0, 0), 1, MPI_LONG, win);
        }
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        CHECK_EQ(win.base<long>()[0], kRounds * size());
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Shared holders at once: each waits inside its epoch, in which it has accessed the target, for all others.
CASE(shared_locks_overlap) {
    Window win(WindowKind::Allocate, 64);
    int seen = -1;
    const auto get_and_meet = [&] {
        MPI_Get(&seen, 1, MPI_INT, 0, win.at(0, 0), 1, MPI_INT, win);
        CHECK_OK(MPI_Win_flush(0, win));
        MPI_Barrier(MPI_COMM_WORLD);
    };
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    get_and_meet();
    MPI_Win_unlock(0, win);
    MPI_Win_lock_all(0, win);
    get_and_meet();
    MPI_Win_unlock_all(win);
}

// Readers with shared locks or lock_all never see the half-done update of a writer with an exclusive lock.
CASE_BY_KIND(readers_and_a_writer) {
    constexpr int kInts = 64;
    Window win(kind, kInts * sizeof(int));
    for (int i = 1; i <= 100; ++i) {
        int data[kInts];
        if (rank() == 0) {
            for (int& d : data)
                d = i;
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size() - 1, 0, win);
            MPI_Put(data, kInts, MPI_INT, size() - 1, win.at(size() - 1, 0), kInts, MPI_INT, win);
            MPI_Win_unlock(size() - 1, win);
        } else {
            if (i % 2)
                MPI_Win_lock(MPI_LOCK_SHARED, size() - 1, 0, win);
            else
                MPI_Win_lock_all(0, win);
            MPI_Get(data, kInts, MPI_INT, size() - 1, win.at(size() - 1, 0), kInts, MPI_INT, win);
            if (i % 2)
                MPI_Win_unlock(size() - 1, win);
            else
                MPI_Win_unlock_all(win);
            CHECK_ALL(data, std::size_t{kInts}, [&](std::size_t) { return data[0]; });
        }
    }
}

CASE_BY_KIND(several_targets_at_once) {
    Window win(kind, 64 * sizeof(int));
    for (int target = 0; target < size(); ++target)
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    int out = rank() + 1;
    const auto mine = static_cast<std::size_t>(rank()) * sizeof(int);
    for (int target = size() - 1; target >= 0; --target)
        MPI_Put(&out, 1, MPI_INT, target, win.at(target, mine), 1, MPI_INT, win);
    // Given back in an order of their own.
    for (int i = 0; i < size(); ++i)
        CHECK_OK(MPI_Win_unlock((i + rank()) % size(), win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_ALL(win.base<int>(), static_cast<std::size_t>(size()), [](std::size_t i) { return static_cast<int>(i) + 1; });
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE_BY_KIND(nocheck) {
    Window win(kind, 64);
    const int out = rank();
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), MPI_MODE_NOCHECK, win));
    CHECK_OK(MPI_Put(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
    CHECK_OK(MPI_Win_unlock(right(), win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.base<int>()[0], left());
    CHECK_OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    int in = -1;
    CHECK_OK(MPI_Get(&in, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_EQ(in, rank());
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE(epochs_without_operations) {
    Window win(WindowKind::Allocate, 64);
    for (int i = 0; i < 300; ++i) {
        const int target = (i + rank()) % size();
        CHECK_OK(MPI_Win_lock(i % 3 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win));
        if (i % 5 == 0) CHECK_OK(MPI_Win_flush(target, win));
        CHECK_OK(MPI_Win_unlock(target, win));
        if (i % 7) continue;
        CHECK_OK(MPI_Win_lock_all(0, win));
        CHECK_OK(MPI_Win_flush_all(win));
        CHECK_OK(MPI_Win_unlock_all(win));
    }
}

// Locks of different windows know nothing of each other.
CASE(windows_are_independent) {
    Window a(WindowKind::Allocate, 64), b(WindowKind::Create, 64);
    for (int i = 0; i < 50; ++i) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, a.handle());
        MPI_Win_lock_all(0, b.handle());
        const int one = i;
        MPI_Put(&one, 1, MPI_INT, rank(), a.at(rank(), 0), 1, MPI_INT, a.handle());
        MPI_Put(&one, 1, MPI_INT, rank(), b.at(rank(), 0), 1, MPI_INT, b.handle());
        MPI_Win_unlock(rank(), a.handle());
        MPI_Win_unlock_all(b.handle());
        CHECK_EQ(a.base<int>()[0], i);
        CHECK_EQ(b.base<int>()[0], i);
    }
}
