// Notified RMA: the numbers of counters, errors, which come before data moves, and operations in an epoch that goes on.
#include <dlfcn.h>

#include <limits>

#include "notified.h"

using osct::Notified;

// Numbers differ between the ranks; a second set zeroes, grows and shrinks.
CASE(numbers_of_counters) {
    Window win(WindowKind::Allocate, 64);
    int number = -1;
    CHECK_OK(OSC_Win_get_num_notify(win, right(), &number));
    CHECK_EQ(number, 0);
    for (const int base : {3, 1, 2000, 0}) {
        CHECK_OK(OSC_Win_set_num_notify(win, MPI_INFO_NULL, base + rank()));
        for (int target = 0; target < size(); ++target) {
            CHECK_OK(OSC_Win_get_num_notify(win, target, &number));
            CHECK_EQ(number, base + target);
        }
        if (base == 0) break;
        CHECK_OK(MPI_Win_lock_all(0, win));
        const int last = base + right() - 1;
        CHECK_OK(OSC_Put_notify(nullptr, 0, MPI_BYTE, right(), 0, 0, MPI_BYTE, last, win));
        MPI_Count value = -1;
        CHECK_OK(OSC_Win_wait_notify(win, base + rank() - 1, 1, &value));
        CHECK_EQ(value, 1);
        CHECK_OK(MPI_Win_unlock_all(win));
    }
}

#ifdef MPICH_NUMVERSION
// Intel MPI's own notified operations count in the host's window, to which no data moves: their first call fails.
CASE(notified_operations_of_the_host) {
    Window win(WindowKind::Allocate, 64);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (const char* name : {"MPIX_Win_create_notify", "PMPIX_Win_create_notify"}) {
        auto* const create = reinterpret_cast<int (*)(MPI_Win, int)>(::dlsym(RTLD_DEFAULT, name));
        CHECK(create != nullptr);
        CHECK_CLASS(create(win, 2), MPI_ERR_UNSUPPORTED_OPERATION);
    }
}
#endif

// Nothing moves when the call fails.
CASE(errors) {
    const Notified win(WindowKind::Allocate, 64, 2);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    const int out = 99;
    const int target = (rank() + 1) % size();
    for (const int counter : {2, -1, 1 << 30}) {
        CHECK_CLASS(OSC_Put_notify(&out, 1, MPI_INT, target, 0, 1, MPI_INT, counter, win), MPI_ERR_ARG);
        CHECK_CLASS(OSC_Accumulate_notify(&out, 1, MPI_INT, target, 0, 1, MPI_INT, MPI_SUM, counter, win), MPI_ERR_ARG);
        CHECK_CLASS(OSC_Win_wait_notify(win, counter, 0, nullptr), MPI_ERR_ARG);
        MPI_Count value = 0;
        CHECK_CLASS(OSC_Win_get_notify_value(win, counter, &value), MPI_ERR_ARG);
        CHECK_CLASS(OSC_Win_reset_notify_value(win, counter, &value), MPI_ERR_ARG);
    }
    int index = 0, number = 0;
    CHECK_CLASS(OSC_Win_wait_any_notify(win, 1, 2, 0, &index, nullptr), MPI_ERR_ARG);
    CHECK_CLASS(OSC_Win_wait_any_notify(win, 0, 0, 0, &index, nullptr), MPI_ERR_ARG);
    for (const int first : {1, 2, std::numeric_limits<int>::max()})
        CHECK_CLASS(OSC_Win_wait_any_notify(win, first, std::numeric_limits<int>::max(), 0, &index, nullptr),
                    MPI_ERR_ARG);
    CHECK_CLASS(OSC_Win_get_num_notify(win, size(), &number), MPI_ERR_RANK);
    CHECK_CLASS(OSC_Win_get_num_notify(win, 0, nullptr), MPI_ERR_ARG);
    CHECK_CLASS(OSC_Win_get_notify_value(win, 0, nullptr), MPI_ERR_ARG);
    CHECK_CLASS(OSC_Win_test_notify(win, 0, 0, nullptr, nullptr), MPI_ERR_ARG);
    CHECK_CLASS(OSC_Put_notify(&out, 1, MPI_INT, size(), 0, 1, MPI_INT, 0, win), MPI_ERR_RANK);
    CHECK_OK(OSC_Put_notify(&out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, 7, win));
    if (osct::served_by_osc()) {
        const int more[2] = {98, 99};
        CHECK_CLASS(OSC_Put_notify(&out, 1, MPI_INT, target, 4096, 1, MPI_INT, 0, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(OSC_Put_notify(more, 2, MPI_INT, target, 0, 1, MPI_INT, 0, win), MPI_ERR_TRUNCATE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_flush_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.base<int>()[0], 0);
    CHECK_EQ(win.value(0), 0);
    CHECK_EQ(win.value(1), 0);
    // A window without counters.
    Returning without;
    CHECK_OK(MPI_Win_lock_all(0, without));
    CHECK_CLASS(OSC_Put_notify(&out, 1, MPI_INT, target, 0, 1, MPI_INT, 0, without), MPI_ERR_ARG);
    CHECK_CLASS(OSC_Win_wait_notify(without, 0, 0, nullptr), MPI_ERR_ARG);
    CHECK_OK(MPI_Win_unlock_all(without));
    CHECK_EQ(without.base<int>()[0], 0);
    Window closed(WindowKind::Allocate, 64);
    CHECK_OK(OSC_Win_set_num_notify(closed, MPI_INFO_NULL, 1));
    MPI_Win_set_errhandler(closed, MPI_ERRORS_RETURN);
    CHECK_CLASS(OSC_Win_set_num_notify(closed, MPI_INFO_NULL, -1), MPI_ERR_ARG);
    CHECK_OK(OSC_Win_set_num_notify(closed, MPI_INFO_NULL, 1));
    if (!osct::served_by_osc()) return;
    CHECK_CLASS(OSC_Put_notify(&out, 1, MPI_INT, target, 0, 1, MPI_INT, 0, closed), MPI_ERR_RMA_SYNC);
    CHECK_OK(MPI_Win_lock_all(0, closed));
    CHECK_OK(OSC_Put_notify(nullptr, 0, MPI_BYTE, target, 0, 0, MPI_BYTE, 0, closed));
    CHECK_OK(MPI_Win_unlock_all(closed));
    CHECK_OK(MPI_Win_fence(0, closed));
    // The first put opens the target for the fast paths, which must not notify it either.
    for (int i = 0; i < 2; ++i) {
        CHECK_CLASS(OSC_Put_notify(&out, 1, MPI_INT, target, 0, 1, MPI_INT, 0, closed), MPI_ERR_RMA_SYNC);
        CHECK_OK(MPI_Put(&out, 1, MPI_INT, target, 8, 1, MPI_INT, closed));
    }
    CHECK_OK(MPI_Win_fence(0, closed));
    CHECK_EQ(closed.base<int>()[0], 0);
}

// The operation is issued although the epoch goes on and, where locks are deferred, others wait in it.
CASE(notified_operations_are_issued_in_the_epoch) {
    SKIP_IF(size() < 2);
    Window win(WindowKind::Allocate, 64);
    CHECK_OK(OSC_Win_set_num_notify(win, MPI_INFO_NULL, 1));
    const long out[2] = {11, 12};
    if (rank() == 0) {
        for (int target = 1; target < size(); ++target) {
            CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
            CHECK_OK(MPI_Put(&out[0], 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
            CHECK_OK(OSC_Put_notify(&out[1], 1, MPI_LONG, target, 8, 1, MPI_LONG, 0, win));
        }
        int done = 0;
        for (int target = 1; target < size(); ++target)
            CHECK_OK(MPI_Recv(&done, 1, MPI_INT, target, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int target = 1; target < size(); ++target)
            CHECK_OK(MPI_Win_unlock(target, win));
    } else {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win));
        CHECK_OK(OSC_Win_wait_notify(win, 0, 1, nullptr));
        CHECK_EQ(win.base<long>()[1], 12);
        CHECK_OK(MPI_Win_unlock(rank(), win));
        const int done = 1;
        CHECK_OK(MPI_Send(&done, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    }
}

// Neither libosc nor the fallback takes the null window for one of theirs.
CASE(the_null_window) {
    const int out = 99;
    const osct::WithoutObject without_object;
    CHECK_CLASS(OSC_Put_notify(&out, 1, MPI_INT, 0, 0, 1, MPI_INT, 0, MPI_WIN_NULL), MPI_ERR_WIN);
    CHECK_CLASS(OSC_Win_wait_notify(MPI_WIN_NULL, 0, 0, nullptr), MPI_ERR_WIN);
    int counters = 0;
    CHECK_CLASS(OSC_Win_get_num_notify(MPI_WIN_NULL, 0, &counters), MPI_ERR_WIN);
    CHECK_CLASS(OSC_Win_set_num_notify(MPI_WIN_NULL, MPI_INFO_NULL, 1), MPI_ERR_WIN);
}
