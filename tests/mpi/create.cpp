// MPI_Win_create over every sort of memory: static, stack, heap, parts of an MPI_Alloc_mem block, none; with sizes and
// displacement units that differ from rank to rank; and everything that outlives or precedes its window.
#include <deque>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create", "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Win_lock",
             "MPI_Alloc_mem", "MPI_Free_mem")

namespace {

long static_memory[64];

int bytes_of(int member) {
    return 8 * (member % 3 == 2 ? 0 : 4 + member);
}
int unit_of(int member) {
    constexpr int kUnits[] = {1, 4, 12, 8, 2};
    return kUnits[member % 5];
}

// Puts, reads back and adds to every long of every member, whose sizes and units differ. Units of 12 reach longs at
// their first and every second displacement only.
void exercise(long* base) {
    MPI_Win win = MPI_WIN_NULL;
    const int bytes = bytes_of(rank());
    for (int i = 0; i < bytes / 8; ++i)
        base[i] = -1;
    CHECK_OK(MPI_Win_create(bytes == 0 ? nullptr : base, bytes, unit_of(rank()), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    const auto targets = [&](auto&& call) {
        for (int step = 0; step < size(); ++step) {
            const int target = (rank() + step) % size();
            for (int offset = 0; offset + 8 <= bytes_of(target); offset += 8)
                if (offset % unit_of(target) == 0) call(target, offset / 8, offset / unit_of(target));
        }
    };
    const int last = size() - 1;
    std::deque<long> values;  // stay in place until the fence
    MPI_Win_fence(0, win);
    if (rank() == last) {
        targets([&](int target, int index, MPI_Aint disp) {
            CHECK_OK(MPI_Put(&values.emplace_back(target * 1000 + index), 1, MPI_LONG, target, disp, 1, MPI_LONG, win));
        });
    }
    MPI_Win_fence(0, win);
    const long one = 1;
    targets([&](int target, int, MPI_Aint disp) {
        CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, target, disp, 1, MPI_LONG, MPI_SUM, win));
    });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    targets([&](int target, int index, MPI_Aint disp) {
        long value = -7;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        CHECK_OK(MPI_Get(&value, 1, MPI_LONG, target, disp, 1, MPI_LONG, win));
        MPI_Win_unlock(target, win);
        CHECK_EQ(value, target * 1000 + index + static_cast<long>(size()));
    });
    for (int i = 0; i < bytes / 8; ++i)
        if (i * 8 % unit_of(rank()) == 0) CHECK_EQ(base[i], rank() * 1000 + i + static_cast<long>(size()));
    if (osct::served_by_osc()) {
        const int empty = 2;
        long value = 0;
        if (size() > empty) {
            MPI_Win_lock(MPI_LOCK_SHARED, empty, 0, win);
            CHECK_CLASS(MPI_Put(&value, 1, MPI_LONG, empty, 0, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
            CHECK_OK(MPI_Put(&value, 0, MPI_LONG, empty, 0, 0, MPI_LONG, win));
            MPI_Win_unlock(empty, win);
        }
    }
    CHECK_OK(MPI_Win_free(&win));
}

}  // namespace

CASE(heap) {
    std::vector<long> memory(64);
    exercise(memory.data());
}
CASE(alloc_mem) {
    long* block = nullptr;
    MPI_Alloc_mem(64 * sizeof(long), MPI_INFO_NULL, &block);
    exercise(block);
    MPI_Free_mem(block);
}
CASE(kinds_of_memory_mixed) {
    long here[64];
    long* block = nullptr;
    MPI_Alloc_mem(64 * sizeof(long), MPI_INFO_NULL, &block);
    for (int shift = 0; shift < 3; ++shift) {
        long* const choices[] = {here, static_memory, block};
        exercise(choices[(rank() + shift) % 3]);
    }
    MPI_Free_mem(block);
}

// Several windows over parts of one block, overlapping too; the block may be large enough to have its own mapping.
CASE(parts_of_one_block) {
    for (const MPI_Aint bytes : {MPI_Aint{1} << 12, MPI_Aint{5} << 20}) {
        char* block = nullptr;
        CHECK_OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &block));
        std::fill_n(block, bytes, char{0});
        constexpr int kParts = 8;
        MPI_Win wins[kParts + 1];
        const MPI_Aint part = bytes / kParts;
        for (int i = 0; i < kParts; ++i)
            CHECK_OK(MPI_Win_create(block + i * part, part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[i]));
        CHECK_OK(MPI_Win_create(block, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[kParts]));
        const int target = right(), source = left();
        for (int i = 0; i < kParts; ++i) {
            const long value = rank() * 100 + i;
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, wins[i]);
            CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target, part - 8, 1, MPI_LONG, wins[i]));
            MPI_Win_unlock(target, wins[i]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < kParts; ++i) {
            long seen = -1;
            MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, wins[kParts]);
            CHECK_OK(MPI_Get(&seen, 1, MPI_LONG, rank(), (i + 1) * part - 8, 1, MPI_LONG, wins[kParts]));
            MPI_Win_unlock(rank(), wins[kParts]);
            CHECK_EQ(seen, source * 100L + i);
        }
        for (MPI_Win& win : wins)
            CHECK_OK(MPI_Win_free(&win));
        CHECK_OK(MPI_Free_mem(block));
    }
}

// Two windows over the same memory, accessed at once: the standard leaves the result undefined. With libosc accesses
// that do not conflict are right, those of the owner included.
CASE(overlapping_windows_at_once) {
    HOST_CANNOT("the standard leaves the result undefined");
    constexpr long kRounds = 100;
    const auto slots = static_cast<std::size_t>(2 * size() + 1), own = slots - 1;
    std::vector<long> memory(slots, -1);
    const auto bytes = static_cast<MPI_Aint>(slots * sizeof(long));
    MPI_Win wins[2];
    for (MPI_Win& win : wins) {
        CHECK_OK(MPI_Win_create(memory.data(), bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        MPI_Win_lock_all(0, win);
    }
    for (long round = 0; round < kRounds; ++round) {
        long out[2], in[2] = {-1, -1};
        for (const int which : {0, 1}) {
            out[which] = round * 2 + which;
            for (int step = 0; step < size(); ++step) {
                const int target = (rank() + step) % size();
                CHECK_OK(MPI_Put(&out[which], 1, MPI_LONG, target, 2 * rank() + which, 1, MPI_LONG, wins[which]));
            }
        }
        static_cast<volatile long*>(memory.data())[own] = round;
        for (MPI_Win win : wins)
            CHECK_OK(MPI_Win_flush_all(win));
        for (const int which : {0, 1})  // each through the other window
            CHECK_OK(MPI_Get(&in[which], 1, MPI_LONG, right(), 2 * rank() + which, 1, MPI_LONG, wins[1 - which]));
        for (MPI_Win win : wins)
            CHECK_OK(MPI_Win_flush_all(win));
        CHECK_EQ(in[0], out[0]);
        CHECK_EQ(in[1], out[1]);
        CHECK_EQ(memory[own], round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (MPI_Win& win : wins) {
        CHECK_OK(MPI_Win_sync(win));
        MPI_Win_unlock_all(win);
    }
    CHECK_ALL(memory.data(), own, [](std::size_t i) { return (kRounds - 1) * 2 + static_cast<long>(i % 2); });
    for (MPI_Win& win : wins)
        CHECK_OK(MPI_Win_free(&win));
}

CASE(nothing_at_all) {
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(nullptr, 0, MPI_INT, 0, 0, 0, MPI_INT, win));
    MPI_Win_fence(0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_OK(MPI_Win_free(&win));
    void* base = &win;
    CHECK_OK(MPI_Win_allocate(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    CHECK_OK(MPI_Win_free(&win));
    void* block = nullptr;
    CHECK_OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &block));
    CHECK_OK(MPI_Free_mem(block));
}
