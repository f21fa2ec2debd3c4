// Batches of small updates beside notified operations, on several windows, and on memory of every kind.
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "batches.h"
#include "notified.h"

using osct::begin_run;
using osct::byte_of;
using osct::kRun;
using osct::kWords;
using osct::look;
using osct::rank;
using osct::size;
using osct::start_run;
using osct::Window;
using osct::WindowKind;

namespace {

CASE(notified_operations_come_behind_a_batch) {
    const std::int64_t operand = 5;
    osct::Notified window(WindowKind::Allocate, kWords * sizeof(std::int64_t), 1);
    begin_run(window);
    window.put(&operand, 1, MPI_INT64_T, rank(), 8 * sizeof operand, 0);
    CHECK_EQ(window.await(0, 1), 1);
    CHECK_EQ(look(window, 0), kRun);
    CHECK_EQ(look(window, 8), operand);
    begin_run(window);
    CHECK_OK(OSC_Accumulate_notify(&operand, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T, MPI_SUM, 0, window.handle()));
    CHECK_EQ(window.await(0, 2), 2);
    CHECK_EQ(look(window, 0), 2 * kRun + operand);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Each window has a run of its own, and a synchronisation call on one leaves that of the other.
CASE(runs_of_two_windows) {
    Window one(WindowKind::Allocate, kWords * sizeof(std::int64_t));
    Window two(WindowKind::Allocate, kWords * sizeof(std::int64_t));
    const std::int64_t ones[] = {1, 1};
    CHECK_OK(MPI_Win_lock_all(0, one.handle()));
    CHECK_OK(MPI_Win_lock_all(0, two.handle()));
    start_run(one, rank());
    start_run(two, rank());
    for (int i = 0; i < kRun; ++i)
        for (const Window* window : {&one, &two})
            CHECK_OK(MPI_Accumulate(ones, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T, MPI_SUM, window->handle()));
    if (osct::served_by_osc()) CHECK(look(one, 0) < kRun);
    CHECK_OK(MPI_Win_flush(rank(), one.handle()));
    CHECK_EQ(look(one, 0), kRun);
    if (osct::served_by_osc()) CHECK(look(two, 0) < kRun);
    CHECK_OK(MPI_Accumulate(ones, 2, MPI_INT64_T, rank(), byte_of(8), 2, MPI_INT64_T, MPI_SUM, one.handle()));
    if (osct::served_by_osc()) CHECK(look(two, 0) < kRun);
    CHECK_OK(MPI_Win_unlock_all(two.handle()));
    CHECK_EQ(look(two, 0), kRun);
    CHECK_OK(MPI_Win_unlock_all(one.handle()));
    MPI_Barrier(MPI_COMM_WORLD);
}

// The pointer shows the run's updates after a synchronisation call, as before MPI_Win_shared_query.
CASE(pointers_to_memory_given_in_a_run) {
    Window window(WindowKind::Shared, kWords * sizeof(std::int64_t));
    CHECK_OK(MPI_Win_lock_all(0, window.handle()));
    for (const std::int64_t total : {kRun, 2 * kRun}) {
        begin_run(window);
        MPI_Aint bytes = 0;
        int unit = 0;
        std::int64_t* words = nullptr;
        CHECK_OK(MPI_Win_shared_query(window.handle(), rank(), &bytes, &unit, &words));
        CHECK_OK(MPI_Win_flush(rank(), window.handle()));
        CHECK_EQ(std::atomic_ref<std::int64_t>(words[0]).load(), total);
    }
    CHECK_OK(MPI_Win_unlock_all(window.handle()));
    MPI_Barrier(MPI_COMM_WORLD);
}

// The neighbour's memory, to its first and last word: mapped here whole, in part (worlds.cmake) or not at all.
CASE(memory_of_every_kind) {
    constexpr std::size_t kMany = 16 * 1024;
    const int target = (rank() + 1) % size();
    for (const WindowKind kind : osct::kAllWindowKinds) {
        if (kind == WindowKind::Shared && !osct::shares_memory(MPI_COMM_WORLD)) continue;
        Window window(kind, kMany * sizeof(std::int64_t));
        std::mt19937 random(static_cast<unsigned>(rank()));
        std::vector<std::int64_t> model(kMany);
        const auto at = [&](std::size_t word) { return window.at(target, word * sizeof(std::int64_t)); };
        CHECK_OK(MPI_Win_lock_all(0, window.handle()));
        for (int i = 0; i < 2000; ++i) {
            const std::size_t places[] = {0, kMany - 1, random() % kMany, random() % 512, kMany - 1 - random() % 512};
            const std::size_t word = places[random() % 5];
            const std::int64_t operand = random();
            CHECK_OK(
                MPI_Accumulate(&operand, 1, MPI_INT64_T, target, at(word), 1, MPI_INT64_T, MPI_BXOR, window.handle()));
            model[word] ^= operand;
            if (i % 500 != 499) continue;
            std::int64_t seen = 0;
            CHECK_OK(MPI_Fetch_and_op(nullptr, &seen, MPI_INT64_T, target, at(word), MPI_NO_OP, window.handle()));
            CHECK_OK(MPI_Win_flush_local(target, window.handle()));
            CHECK_EQ(seen, model[word]);
        }
        CHECK_OK(MPI_Win_flush(target, window.handle()));
        std::vector<std::int64_t> found(kMany);
        CHECK_OK(MPI_Get(found.data(), kMany, MPI_INT64_T, target, at(0), kMany, MPI_INT64_T, window.handle()));
        CHECK_OK(MPI_Win_unlock_all(window.handle()));
        CHECK_ALL(found.data(), kMany, [&](std::size_t i) { return model[i]; });
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

void many_origins_on(WindowKind kind) {
    constexpr int kAdds = 5000;
    Window window(kind, kWords * sizeof(std::int64_t));
    std::mt19937 random(static_cast<unsigned>(rank()));
    const std::int64_t one = 1;
    CHECK_OK(MPI_Win_lock_all(0, window.handle()));
    for (int target = 0; target < size(); ++target)
        start_run(window, target);
    for (int i = 0; i < kAdds; ++i) {
        const std::size_t word = random() % 2 * 1024 + random() % 4;
        CHECK_OK(
            MPI_Accumulate(&one, 1, MPI_INT64_T, i % size(), byte_of(word), 1, MPI_INT64_T, MPI_SUM, window.handle()));
    }
    CHECK_OK(MPI_Win_unlock_all(window.handle()));
    MPI_Barrier(MPI_COMM_WORLD);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < kWords; ++i)
        sum += look(window, i);
    std::int64_t all = 0;
    MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(all, std::int64_t{kAdds} * size());
    MPI_Barrier(MPI_COMM_WORLD);
}

// All ranks add to the same words: no update is lost or done twice.
CASE(batches_of_many_origins) {
    for (const WindowKind kind : {WindowKind::Allocate, WindowKind::Create})
        many_origins_on(kind);
}

// Whether libosc reaches memory of that rank, which is not mapped here, by process_vm_*.
bool reached_by_process_vm(const Window& window, int target) {
    struct Place {
        std::int64_t pid = ::getpid();
        std::uint64_t address = 0;
    };
    Place mine;
    mine.address = reinterpret_cast<std::uint64_t>(window.base<std::int64_t>());
    std::vector<Place> all(static_cast<std::size_t>(size()));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    const Place& there = all[static_cast<std::size_t>(target)];
    std::int64_t word = 0;
    const iovec to{&word, sizeof word};
    const iovec from{reinterpret_cast<void*>(there.address), sizeof word};
    const bool allowed = ::process_vm_readv(static_cast<pid_t>(there.pid), &to, 1, &from, 1, 0) == sizeof word;
    for (const char* option : {"OSC_CMA", "OSC_ADOPT", "OSC_FAKE_NODES", "OSC_LOCK", "OSC_FENCE", "OSC_CHECK"})
        if (std::getenv(option) != nullptr) return false;
    return allowed && target != rank() && osct::served_by_osc();
}

// In memory that only process_vm_* reaches sums are delayed too.
CASE(updates_of_memory_that_is_not_mapped) {
    Window window(WindowKind::Create, kWords * sizeof(std::int64_t));
    const int target = (rank() + 1) % size();
    const bool delayed = reached_by_process_vm(window, target);
    const std::int64_t one = 1;
    for (const bool fence : {false, true}) {
        MPI_Win win = window.handle();
        const std::int64_t before = look(window, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(fence ? MPI_Win_fence(0, win) : MPI_Win_lock_all(0, win));
        for (int i = 0; i < kRun; ++i)
            CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win));
        MPI_Barrier(MPI_COMM_WORLD);
        const std::int64_t seen = look(window, 0) - before;
        CHECK(delayed ? seen < kRun : seen <= kRun);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(fence ? MPI_Win_fence(MPI_MODE_NOSUCCEED, win) : MPI_Win_unlock_all(win));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(look(window, 0), before + kRun);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Long runs of short puts and gets on the neighbour's memory of every kind. A put's origin is free at once, as it is
// without a batch; what a get returns is there after the flush.
CASE(runs_of_puts_and_gets) {
    const int target = (rank() + 1) % size();
    const int origin = (rank() + size() - 1) % size();
    for (const WindowKind kind : osct::kAllWindowKinds) {
        if (kind == WindowKind::Shared && !osct::shares_memory(MPI_COMM_WORLD)) continue;
        Window window(kind, kWords * sizeof(std::int64_t));
        MPI_Win win = window.handle();
        const auto at = [&](std::size_t word) { return window.at(target, word * sizeof(std::int64_t)); };
        std::vector<std::int64_t> found(kWords);
        CHECK_OK(MPI_Win_lock_all(0, win));
        for (int round = 0; round < 2; ++round) {
            const auto value = [&](int of, std::size_t word) {
                return static_cast<std::int64_t>(word) + 100000 * of + 10000 * round;
            };
            for (std::size_t i = 0; i < kWords; i += 2) {
                std::int64_t pair[] = {value(rank(), i), value(rank(), i + 1)};
                CHECK_OK(MPI_Put(pair, 2, MPI_INT64_T, target, at(i), 2, MPI_INT64_T, win));
                pair[0] = pair[1] = -1;
            }
            CHECK_OK(MPI_Win_flush(target, win));
            MPI_Barrier(MPI_COMM_WORLD);
            CHECK_OK(MPI_Win_sync(win));
            for (std::size_t i = 0; i < kWords; ++i)
                CHECK_EQ(look(window, i), value(origin, i));
            for (std::size_t i = 0; i < kWords; ++i)
                CHECK_OK(MPI_Get(&found[i], 1, MPI_INT64_T, target, at(i), 1, MPI_INT64_T, win));
            CHECK_OK(round == 0 ? MPI_Win_flush_all(win) : MPI_Win_flush_local(target, win));
            CHECK_ALL(found.data(), kWords, [&](std::size_t i) { return value(rank(), i); });
            MPI_Barrier(MPI_COMM_WORLD);
        }
        CHECK_OK(MPI_Win_unlock_all(win));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// A wrong displacement or rank in the middle of a run is an error of its own call, and the others of the run are done.
CASE(errors_in_a_run_of_puts) {
    const int target = (rank() + 1) % size();
    Window window(WindowKind::Create, kWords * sizeof(std::int64_t));
    MPI_Win win = window.handle();
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    const std::int64_t seven = 7;
    const auto put = [&](int to, MPI_Aint at) { return MPI_Put(&seven, 1, MPI_INT64_T, to, at, 1, MPI_INT64_T, win); };
    CHECK_OK(MPI_Win_lock_all(0, win));
    for (std::size_t i = 0; i < 200; ++i)
        CHECK_OK(put(target, byte_of(i)));
    CHECK_CLASS(put(target, byte_of(2 * kWords)), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(put(target, -8), MPI_ERR_DISP);
    CHECK_CLASS(put(size(), 0), MPI_ERR_RANK);
    CHECK_OK(put(MPI_PROC_NULL, 0));
    CHECK_OK(put(target, byte_of(200)));
    CHECK_OK(MPI_Win_unlock_all(win));
    CHECK_CLASS(put(target, 0), MPI_ERR_RMA_SYNC);
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t i = 0; i <= 200; ++i)
        CHECK_EQ(look(window, i), seven);
    CHECK_EQ(look(window, 201), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
