// Put and get of plain bytes and words on every kind of memory, with each form of completion in a lock_all epoch.
#include <cstdint>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Win_flush",
             "MPI_Win_flush_all", "MPI_Win_flush_local", "MPI_Win_flush_local_all", "MPI_Win_sync", "MPI_Win_create",
             "MPI_Win_allocate", "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach", "MPI_Win_free",
             "MPI_Alloc_mem", "MPI_Free_mem")

namespace {

std::uint64_t word(int origin, int target, std::size_t i) {
    return static_cast<std::uint64_t>(origin) * 1000003 + static_cast<std::uint64_t>(target) * 7919 + i * 31 + 5;
}

// Every rank writes its own words on every rank, itself included; then all ranks read the words of the others.
void all_to_all(WindowKind kind, std::size_t words) {
    const std::size_t slot = words * 8;
    const auto ranks = static_cast<std::size_t>(size());
    Window win(kind, slot * ranks);
    const int count = static_cast<int>(words);
    MPI_Win_lock_all(0, win);
    std::vector<std::uint64_t> out(words * ranks);
    for (int target = 0; target < size(); ++target) {
        std::uint64_t* data = &out[static_cast<std::size_t>(target) * words];
        for (std::size_t i = 0; i < words; ++i)
            data[i] = word(rank(), target, i);
        CHECK_OK(MPI_Put(data, count, MPI_UINT64_T, target, win.at(target, slot * static_cast<std::size_t>(rank())),
                         count, MPI_UINT64_T, win));
        if (target % 2) CHECK_OK(MPI_Win_flush(target, win));
    }
    CHECK_OK(MPI_Win_flush_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (int origin = 0; origin < size(); ++origin) {
        CHECK_ALL(win.base<std::uint64_t>() + static_cast<std::size_t>(origin) * words, words,
                  [&](std::size_t i) { return word(origin, rank(), i); });
    }
    std::vector<std::uint64_t> in(words);
    static int turn = 0;
    for (int target = 0; target < size(); ++target) {
        for (int origin = 0; origin < size(); ++origin) {
            std::fill(in.begin(), in.end(), 0);
            CHECK_OK(MPI_Get(in.data(), count, MPI_UINT64_T, target,
                             win.at(target, slot * static_cast<std::size_t>(origin)), count, MPI_UINT64_T, win));
            // The data of a get is there after the local forms too; the host alone returns from all but flush before
            // large gets have arrived (seen with 4 ranks and 560,000 bytes).
            switch (osct::served_by_osc() ? turn++ % 4 : 0) {
                case 0:
                    CHECK_OK(MPI_Win_flush(target, win));
                    break;
                case 1:
                    CHECK_OK(MPI_Win_flush_local(target, win));
                    break;
                case 2:
                    CHECK_OK(MPI_Win_flush_local_all(win));
                    break;
                default:
                    CHECK_OK(MPI_Win_flush_all(win));
            }
            CHECK_ALL(in.data(), words, [&](std::size_t i) { return word(origin, target, i); });
        }
    }
    CHECK_OK(MPI_Win_unlock_all(win));
}

// Every length and offset inside a few cache lines, with the bytes around untouched.
void bytes(WindowKind kind) {
    constexpr std::size_t kBytes = 160;
    const int target = right();
    Window win(kind, kBytes);
    MPI_Win_lock_all(0, win);
    char out[kBytes];
    for (std::size_t i = 0; i < kBytes; ++i)
        out[i] = static_cast<char>(i * 7 + 1);
    const std::size_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 80};
    char zero[kBytes] = {}, in[kBytes];
    for (std::size_t offset = 0; offset < 70; offset += 3) {
        for (std::size_t length : lengths) {
            const int n = static_cast<int>(length);
            MPI_Put(out, n, MPI_CHAR, target, win.at(target, offset), n, MPI_CHAR, win);
            MPI_Win_flush(target, win);
            MPI_Get(in, kBytes, MPI_BYTE, target, win.at(target, 0), kBytes, MPI_BYTE, win);
            MPI_Win_flush(target, win);
            CHECK_ALL(in, kBytes, [&](std::size_t i) {
                return i < offset || i >= offset + length ? char{0} : static_cast<char>((i - offset) * 7 + 1);
            });
            MPI_Put(zero, kBytes, MPI_BYTE, target, win.at(target, 0), kBytes, MPI_BYTE, win);
            MPI_Win_flush(target, win);
        }
    }
    MPI_Win_unlock_all(win);
}

}  // namespace

CASE(words_on_allocate) {
    for (std::size_t words : {1, 2, 7, 100, 1024, 70000})
        all_to_all(WindowKind::Allocate, words);
}
CASE(words_on_create) {
    for (std::size_t words : {1, 2, 7, 1024, 70000})
        all_to_all(WindowKind::Create, words);
}
CASE(words_on_alloc_mem) {
    for (std::size_t words : {1, 7, 1024, 70000})
        all_to_all(WindowKind::CreateAllocMem, words);
}
CASE(words_on_dynamic) {
    for (std::size_t words : {1, 7, 1024, 70000})
        all_to_all(WindowKind::Dynamic, words);
}
CASE(words_on_shared) {
    for (std::size_t words : {2, 8, 1024, 70000})
        all_to_all(WindowKind::Shared, words);
}
CASE(bytes_on_every_kind) {
    for (WindowKind kind : kAllWindowKinds)
        bytes(kind);
}

CASE_BY_KIND(proc_null_is_a_target) {
    Window win(kind, 64);
    MPI_Win_lock_all(0, win);
    int value = 42;
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    CHECK_OK(MPI_Get(&value, 1, MPI_INT, MPI_PROC_NULL, 12345, 1, MPI_INT, win));
    CHECK_OK(MPI_Accumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win));
    CHECK_OK(MPI_Fetch_and_op(&value, &value, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win));
    CHECK_OK(MPI_Compare_and_swap(&value, &value, &value, MPI_INT, MPI_PROC_NULL, 0, win));
    CHECK_OK(MPI_Win_flush_all(win));
    MPI_Win_unlock_all(win);
    CHECK_EQ(value, 42);
}

CASE_BY_KIND(many_puts_then_one_flush) {
    constexpr int kCount = 20000;
    Window win(kind, kCount * sizeof(int));
    const int target = right(), source = left();
    std::vector<int> out(kCount);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < kCount; ++i) {
        out[static_cast<std::size_t>(i)] = rank() * 100000 + i;
        MPI_Put(&out[static_cast<std::size_t>(i)], 1, MPI_INT, target, win.at(target, static_cast<std::size_t>(i) * 4),
                1, MPI_INT, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, win);
    CHECK_ALL(win.base<int>(), std::size_t{kCount},
              [&](std::size_t i) { return source * 100000 + static_cast<int>(i); });
    MPI_Win_unlock(rank(), win);
    MPI_Barrier(MPI_COMM_WORLD);
}
