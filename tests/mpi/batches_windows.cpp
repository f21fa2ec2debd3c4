// Batches of small updates beside notified operations, on several windows, and on memory of every kind.
#include <atomic>
#include <cstdint>
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

// All ranks add to the same words: no update is lost or done twice.
CASE(batches_of_many_origins) {
    constexpr int kAdds = 5000;
    Window window(WindowKind::Allocate, kWords * sizeof(std::int64_t));
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

}  // namespace
