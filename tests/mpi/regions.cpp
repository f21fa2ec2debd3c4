// Attached regions of dynamic windows: empty regions, memory of every kind, accesses anywhere inside, more regions than
// the system has memory for, and regions that are still attached when the window is freed.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "dynamic_window.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach", "MPI_Put", "MPI_Get",
             "MPI_Accumulate", "MPI_Alloc_mem")

using osct::address_at;
using osct::Dynamic;

namespace {

long static_memory[16];

}  // namespace

CASE(nothing_attached) {
    HOST_CANNOT("the host alone does not check addresses");
    Dynamic dynamic;
    long memory[4] = {1, 2, 3, 4};
    const MPI_Aint there = address_at(right(), memory);
    CHECK_OK(MPI_Win_attach(dynamic.win, memory, 0));
    CHECK_OK(MPI_Win_attach(dynamic.win, nullptr, 0));
    long value = 9;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, dynamic.win);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_LONG, right(), there, 1, MPI_LONG, dynamic.win), MPI_ERR_RMA_RANGE);
    CHECK_OK(MPI_Put(&value, 0, MPI_LONG, right(), there, 0, MPI_LONG, dynamic.win));
    MPI_Win_unlock_all(dynamic.win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(memory[0], 1L);
    // Each goes once, as it came; real memory may be attached at the same place meanwhile.
    CHECK_OK(MPI_Win_attach(dynamic.win, memory, sizeof memory));
    CHECK_OK(MPI_Win_detach(dynamic.win, memory));
    CHECK_OK(MPI_Win_detach(dynamic.win, memory));
    CHECK_OK(MPI_Win_detach(dynamic.win, nullptr));
    CHECK(MPI_Win_detach(dynamic.win, memory) != MPI_SUCCESS);
    CHECK(MPI_Win_detach(dynamic.win, nullptr) != MPI_SUCCESS);
}

CASE(memory_of_every_sort) {
    long on_the_stack[16];
    std::vector<long> on_the_heap(16);
    long* shared = nullptr;
    MPI_Alloc_mem(16 * sizeof(long), MPI_INFO_NULL, &shared);
    Dynamic dynamic;
    long* const sorts[] = {on_the_stack, on_the_heap.data(), static_memory, shared};
    MPI_Aint theirs[4];
    for (int i = 0; i < 4; ++i) {
        std::fill_n(sorts[i], 16, -1L);
        CHECK_OK(MPI_Win_attach(dynamic.win, sorts[i], 16 * sizeof(long)));
        theirs[i] = address_at(right(), sorts[i]);
    }
    MPI_Win_fence(0, dynamic.win);
    long out[4][16];
    for (int i = 0; i < 4; ++i) {
        for (int k = 0; k < 16; ++k)
            out[i][k] = rank() * 1000 + i * 100 + k;
        CHECK_OK(MPI_Put(out[i], 16, MPI_LONG, right(), theirs[i], 16, MPI_LONG, dynamic.win));
    }
    MPI_Win_fence(0, dynamic.win);
    long in[4][16];
    for (int i = 0; i < 4; ++i)
        CHECK_OK(MPI_Get(in[i], 16, MPI_LONG, right(), theirs[i], 16, MPI_LONG, dynamic.win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, dynamic.win);
    for (int i = 0; i < 4; ++i) {
        CHECK_ALL(sorts[i], 16u, [&](std::size_t k) { return left() * 1000 + i * 100 + static_cast<long>(k); });
        CHECK_ALL(in[i], 16u, [&](std::size_t k) { return rank() * 1000 + i * 100 + static_cast<long>(k); });
        CHECK_OK(MPI_Win_detach(dynamic.win, sorts[i]));
    }
    CHECK_OK(MPI_Win_free(&dynamic.win));
    MPI_Free_mem(shared);
}

// Every offset and a few lengths, up to the last byte of the region, and not one byte beside them.
CASE(anywhere_inside) {
    constexpr std::size_t kBytes = 96, kGuard = 16;
    for (const bool shared : {false, true}) {
        char* block = nullptr;
        std::vector<char> heap(kBytes + 2 * kGuard);
        if (shared) MPI_Alloc_mem(static_cast<MPI_Aint>(heap.size()), MPI_INFO_NULL, &block);
        char* const memory = shared ? block : heap.data();
        std::fill_n(memory, heap.size(), 'g');
        Dynamic dynamic;
        CHECK_OK(MPI_Win_attach(dynamic.win, memory + kGuard, kBytes));
        const MPI_Aint there = address_at(right(), memory + kGuard);
        std::vector<char> out(kBytes), in(kBytes);
        for (std::size_t i = 0; i < kBytes; ++i)
            out[i] = static_cast<char>(i + 1);
        MPI_Win_lock_all(0, dynamic.win);
        for (std::size_t offset = 0; offset < kBytes; offset += 5) {
            for (std::size_t length : {std::size_t{1}, std::size_t{7}, std::size_t{16}, kBytes - offset}) {
                const int n = static_cast<int>(std::min(length, kBytes - offset));
                const MPI_Aint at = MPI_Aint_add(there, static_cast<MPI_Aint>(offset));
                CHECK_OK(MPI_Put(&out[offset], n, MPI_CHAR, right(), at, n, MPI_CHAR, dynamic.win));
                MPI_Win_flush(right(), dynamic.win);
                std::fill(in.begin(), in.end(), 0);
                CHECK_OK(MPI_Get(in.data(), n, MPI_CHAR, right(), at, n, MPI_CHAR, dynamic.win));
                MPI_Win_flush(right(), dynamic.win);
                CHECK_ALL(in.data(), static_cast<std::size_t>(n), [&](std::size_t i) { return out[offset + i]; });
            }
        }
        MPI_Win_unlock_all(dynamic.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_ALL(memory, kGuard, [](std::size_t) { return 'g'; });
        CHECK_ALL(memory + kGuard, kBytes, [&](std::size_t i) { return out[i]; });
        CHECK_ALL(memory + kGuard + kBytes, kGuard, [](std::size_t) { return 'g'; });
        CHECK_OK(MPI_Win_free(&dynamic.win));  // detaches what is left
        if (shared) MPI_Free_mem(block);
    }
}

// A region goes when the accesses to it have ended, and its memory may be used, freed and attached elsewhere at once.
// A region is mapped for loads and stores after some operations on it. An update that goes so must not overtake one
// that an agent still has.
CASE(updates_keep_their_order_while_regions_get_mapped) {
    constexpr int kRegions = 100, kCount = 1 << 18;
    Dynamic dynamic;
    const std::vector<long> ones(kCount, 1);
    const long one = 1;
    for (int round = 0; round < kRegions; ++round) {
        long* memory = nullptr;
        MPI_Alloc_mem(kCount * sizeof(long), MPI_INFO_NULL, &memory);
        std::fill_n(memory, kCount, 0L);
        CHECK_OK(MPI_Win_attach(dynamic.win, memory, kCount * sizeof(long)));
        const MPI_Aint there = address_at(right(), memory);
        const MPI_Aint last = there + (kCount - 1) * static_cast<MPI_Aint>(sizeof(long));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, dynamic.win);
        for (int i = 0; i < round % 4; ++i)
            MPI_Accumulate(&one, 1, MPI_LONG, right(), last, 1, MPI_LONG, MPI_SUM, dynamic.win);
        MPI_Accumulate(ones.data(), kCount, MPI_LONG, right(), there, kCount, MPI_LONG, MPI_REPLACE, dynamic.win);
        MPI_Accumulate(&one, 1, MPI_LONG, right(), last, 1, MPI_LONG, MPI_SUM, dynamic.win);
        MPI_Win_unlock(right(), dynamic.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(memory[kCount - 1], 2L);
        CHECK_OK(MPI_Win_detach(dynamic.win, memory));
        MPI_Free_mem(memory);
    }
}

CASE(regions_attached_when_the_window_is_freed) {
    auto memory = std::make_unique<long[]>(8);
    for (int round = 0; round < 5; ++round) {
        Dynamic dynamic;
        CHECK_OK(MPI_Win_attach(dynamic.win, memory.get(), 64));
        const MPI_Aint there = address_at(right(), memory.get());
        const long out = rank() * 10 + round;
        MPI_Win_fence(0, dynamic.win);
        CHECK_OK(MPI_Put(&out, 1, MPI_LONG, right(), there, 1, MPI_LONG, dynamic.win));
        MPI_Win_fence(MPI_MODE_NOSUCCEED, dynamic.win);
        CHECK_EQ(memory[0], left() * 10L + round);
        if (round % 2) CHECK_OK(MPI_Win_detach(dynamic.win, memory.get()));
        CHECK_OK(MPI_Win_free(&dynamic.win));
        memory = std::make_unique<long[]>(8);
    }
}

CASE(memory_that_cannot_be_attached) {
    HOST_CANNOT("the host alone does not check");
    Dynamic dynamic;
    CHECK_CLASS(MPI_Win_attach(dynamic.win, nullptr, 64), MPI_ERR_RMA_ATTACH);
    // No room for a larger table of regions: the system refuses this process larger files, and shared memory is one.
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 4096;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    constexpr std::size_t kMost = 300000;
    const auto bytes = std::make_unique<char[]>(2 * kMost);
    std::size_t attached = 0;
    int error = MPI_SUCCESS;
    while (attached < kMost && error == MPI_SUCCESS) {
        error = MPI_Win_attach(dynamic.win, &bytes[2 * attached], 1);
        if (error == MPI_SUCCESS) ++attached;
    }
    limit.rlim_cur = before;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_CLASS(error, MPI_ERR_RMA_ATTACH);
    CHECK(attached > 0 && attached < kMost);
    // The earlier regions are still attached, and with memory available again the next one is attached too.
    CHECK_OK(MPI_Win_attach(dynamic.win, &bytes[2 * attached], 1));
    const MPI_Aint there = address_at(right(), bytes.get());
    const char out = static_cast<char>(rank() + 1);
    MPI_Win_fence(0, dynamic.win);
    CHECK_OK(MPI_Put(&out, 1, MPI_CHAR, right(), there, 1, MPI_CHAR, dynamic.win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, dynamic.win);
    CHECK_EQ(bytes[0], static_cast<char>(left() + 1));
    CHECK_OK(MPI_Win_free(&dynamic.win));
}
