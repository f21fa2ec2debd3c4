// Compare-and-swap of every type that admits it: integers, logicals and bytes of each width.
#include <cstdint>
#include <cstring>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Compare_and_swap", "MPI_Win_flush")

namespace {

template <class T>
void swaps(const Window& win, MPI_Datatype type) {
    const int target = right();
    const MPI_Win w = win;
    for (std::size_t slot = 0; slot < 5; ++slot) {
        const MPI_Aint at = win.at(target, slot * sizeof(T));
        const T zero{}, one = static_cast<T>(1), wrong = static_cast<T>(!one);
        T old = one;
        // Fits: stored. Does not fit: the old value returned, nothing stored.
        CHECK_OK(MPI_Compare_and_swap(&one, &zero, &old, type, target, at, w));
        MPI_Win_flush(target, w);
        CHECK_EQ(old, zero);
        CHECK_OK(MPI_Compare_and_swap(&zero, &wrong, &old, type, target, at, w));
        MPI_Win_flush(target, w);
        CHECK_EQ(old, one);
        CHECK_OK(MPI_Compare_and_swap(&zero, &one, &old, type, target, at, w));
        MPI_Win_flush(target, w);
        CHECK_EQ(old, one);
        CHECK_OK(MPI_Compare_and_swap(&zero, &zero, &old, type, target, at, w));
        MPI_Win_flush(target, w);
        CHECK_EQ(old, zero);
    }
}

}  // namespace

CASE_BY_KIND(every_type) {
    Window win(kind, 256);
    MPI_Win_lock_all(0, win);
    swaps<signed char>(win, MPI_SIGNED_CHAR);
    swaps<unsigned char>(win, MPI_UNSIGNED_CHAR);
    swaps<short>(win, MPI_SHORT);
    swaps<unsigned short>(win, MPI_UNSIGNED_SHORT);
    swaps<int>(win, MPI_INT);
    swaps<unsigned>(win, MPI_UNSIGNED);
    swaps<long>(win, MPI_LONG);
    swaps<unsigned long>(win, MPI_UNSIGNED_LONG);
    swaps<long long>(win, MPI_LONG_LONG);
    swaps<std::int8_t>(win, MPI_INT8_T);
    swaps<std::uint16_t>(win, MPI_UINT16_T);
    swaps<std::int32_t>(win, MPI_INT32_T);
    swaps<std::uint64_t>(win, MPI_UINT64_T);
    swaps<MPI_Aint>(win, MPI_AINT);
    swaps<MPI_Offset>(win, MPI_OFFSET);
    swaps<MPI_Count>(win, MPI_COUNT);
    swaps<int>(win, MPI_INTEGER);
    swaps<int>(win, MPI_LOGICAL);
    swaps<bool>(win, MPI_C_BOOL);
    swaps<unsigned char>(win, MPI_BYTE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// A spin lock made of it excludes: the counter that it guards is read and written by separate calls.
CASE_BY_KIND(a_spin_lock) {
    const int rounds = osct::served_by_osc() ? 200 : 50;
    Window win(kind, 64);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < rounds; ++i) {
        const int free = 0, taken = rank() + 1;
        int old = 0, value = 0;
        do {
            MPI_Compare_and_swap(&taken, &free, &old, MPI_INT, 0, win.at(0, 0), win);
            MPI_Win_flush(0, win);
        } while (old != free);
        MPI_Get(&value, 1, MPI_INT, 0, win.at(0, 8), 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        ++value;
        MPI_Put(&value, 1, MPI_INT, 0, win.at(0, 8), 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        MPI_Compare_and_swap(&free, &taken, &old, MPI_INT, 0, win.at(0, 0), win);
        MPI_Win_flush(0, win);
        CHECK_EQ(old, taken);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK_EQ(win.base<int>()[2], rounds * size());
    MPI_Barrier(MPI_COMM_WORLD);
}
