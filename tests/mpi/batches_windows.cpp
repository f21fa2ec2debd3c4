// Batches of small updates beside notified operations, on several windows, and on memory of every kind.
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "batches.h"
#include "notified.h"

using osct::begin_run;
using osct::byte_of;
using osct::kRun;
using osct::kWords;
using osct::look;
using osct::start_run;

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
    CHECK_OK(OSC_Accumulate_notify(&operand, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T, MPI_SUM, 0, window));
    CHECK_EQ(window.await(0, 2), 2);
    CHECK_EQ(look(window, 0), 2 * kRun + operand);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Several windows whose handles are pointers may have one place in the cache, and then have no runs.
constexpr bool kMayShareAPlace = std::is_pointer_v<MPI_Win>;

bool delays() {
    return osct::served_by_osc() && !kMayShareAPlace;
}

// Each window has a run of its own, and a synchronisation call on one leaves that of the other.
CASE(runs_of_two_windows) {
    Window one(WindowKind::Allocate, kWords * sizeof(std::int64_t));
    Window two(WindowKind::Allocate, kWords * sizeof(std::int64_t));
    const std::int64_t ones[] = {1, 1};
    CHECK_OK(MPI_Win_lock_all(0, one));
    CHECK_OK(MPI_Win_lock_all(0, two));
    start_run(one, rank());
    start_run(two, rank());
    for (int i = 0; i < kRun; ++i)
        for (const Window* window : {&one, &two})
            CHECK_OK(MPI_Accumulate(ones, 1, MPI_INT64_T, rank(), 0, 1, MPI_INT64_T, MPI_SUM, window->handle()));
    if (delays()) CHECK(look(one, 0) < kRun);
    CHECK_OK(MPI_Win_flush(rank(), one));
    CHECK_EQ(look(one, 0), kRun);
    if (delays()) CHECK(look(two, 0) < kRun);
    CHECK_OK(MPI_Accumulate(ones, 2, MPI_INT64_T, rank(), byte_of(8), 2, MPI_INT64_T, MPI_SUM, one));
    if (delays()) CHECK(look(two, 0) < kRun);
    CHECK_OK(MPI_Win_unlock_all(two));
    CHECK_EQ(look(two, 0), kRun);
    CHECK_OK(MPI_Win_unlock_all(one));
    MPI_Barrier(MPI_COMM_WORLD);
}

// The host's handles of later windows do not follow those of the first ones. All have the path that finds runs.
CASE(runs_of_many_windows) {
    SKIP_IF(kMayShareAPlace);
    std::vector<std::unique_ptr<Window>> windows;
    for (int i = 0; i < 40; ++i)
        windows.push_back(std::make_unique<Window>(WindowKind::Allocate, kWords * sizeof(std::int64_t)));
    for (const auto& window : windows) {
        CHECK_OK(MPI_Win_lock_all(0, window->handle()));
        begin_run(*window);
        CHECK_OK(MPI_Win_unlock_all(window->handle()));
        CHECK_EQ(look(*window, 0), kRun);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// The pointer shows the run's updates after a synchronisation call, as before MPI_Win_shared_query.
CASE(pointers_to_memory_given_in_a_run) {
    Window window(WindowKind::Shared, kWords * sizeof(std::int64_t));
    CHECK_OK(MPI_Win_lock_all(0, window));
    for (const std::int64_t total : {kRun, 2 * kRun}) {
        begin_run(window);
        MPI_Aint bytes = 0;
        int unit = 0;
        std::int64_t* words = nullptr;
        CHECK_OK(MPI_Win_shared_query(window, rank(), &bytes, &unit, &words));
        CHECK_OK(MPI_Win_flush(rank(), window));
        CHECK_EQ(std::atomic_ref<std::int64_t>(words[0]).load(), total);
    }
    CHECK_OK(MPI_Win_unlock_all(window));
    MPI_Barrier(MPI_COMM_WORLD);
}

// The neighbour's memory, to its first and last word: mapped here whole, in part (worlds.cmake) or not at all.
CASE_BY_KIND(memory_of_every_kind) {
    constexpr std::size_t kMany = 16 * 1024;
    const int target = (rank() + 1) % size();
    if (kind == WindowKind::Shared && !osct::shares_memory(MPI_COMM_WORLD)) return;
    Window window(kind, kMany * sizeof(std::int64_t));
    std::mt19937 random(static_cast<unsigned>(rank()));
    std::vector<std::int64_t> model(kMany);
    const auto at = [&](std::size_t word) { return window.at(target, word * sizeof(std::int64_t)); };
    CHECK_OK(MPI_Win_lock_all(0, window));
    for (int i = 0; i < 2000; ++i) {
        const std::size_t places[] = {0, kMany - 1, random() % kMany, random() % 512, kMany - 1 - random() % 512};
        const std::size_t word = places[random() % 5];
        const std::int64_t operand = random();
        CHECK_OK(MPI_Accumulate(&operand, 1, MPI_INT64_T, target, at(word), 1, MPI_INT64_T, MPI_BXOR, window));
        model[word] ^= operand;
        if (i % 500 != 499) continue;
        std::int64_t seen = 0;
        CHECK_OK(MPI_Fetch_and_op(nullptr, &seen, MPI_INT64_T, target, at(word), MPI_NO_OP, window));
        CHECK_OK(MPI_Win_flush_local(target, window));
        CHECK_EQ(seen, model[word]);
    }
    CHECK_OK(MPI_Win_flush(target, window));
    std::vector<std::int64_t> found(kMany);
    CHECK_OK(MPI_Get(found.data(), kMany, MPI_INT64_T, target, at(0), kMany, MPI_INT64_T, window));
    CHECK_OK(MPI_Win_unlock_all(window));
    CHECK_ALL(found.data(), kMany, [&](std::size_t i) { return model[i]; });
    MPI_Barrier(MPI_COMM_WORLD);
}

void many_origins_on(WindowKind kind) {
    constexpr int kAdds = 5000;
    Window window(kind, kWords * sizeof(std::int64_t));
    std::mt19937 random(static_cast<unsigned>(rank()));
    const std::int64_t one = 1;
    CHECK_OK(MPI_Win_lock_all(0, window));
    for (int target = 0; target < size(); ++target)
        start_run(window, target);
    for (int i = 0; i < kAdds; ++i) {
        const std::size_t word = random() % 2 * 1024 + random() % 4;
        CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, i % size(), byte_of(word), 1, MPI_INT64_T, MPI_SUM, window));
    }
    CHECK_OK(MPI_Win_unlock_all(window));
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
    for (const char* option : {"OSC_DEBUG", "OSC_ADOPT", "OSC_LOCK", "OSC_FENCE", "OSC_CHECK"})
        if (std::getenv(option) != nullptr) return false;
    return allowed && target != rank() && osct::served_by_osc();
}

struct EpochKind {
    std::function<void(MPI_Win)> begin;
    std::function<void(MPI_Win)> end;
    bool is_fence = false;
};

// Epochs in which every process is the origin of its right neighbour.
std::vector<EpochKind> every_epoch(int target, MPI_Group targets, MPI_Group origins) {
    const auto lock = [target](int kind) {
        return EpochKind{[=](MPI_Win win) { CHECK_OK(MPI_Win_lock(kind, target, 0, win)); },
                         [=](MPI_Win win) { CHECK_OK(MPI_Win_unlock(target, win)); }};
    };
    return {{[](MPI_Win win) { CHECK_OK(MPI_Win_lock_all(0, win)); },
             [](MPI_Win win) { CHECK_OK(MPI_Win_unlock_all(win)); }},
            {[](MPI_Win win) { CHECK_OK(MPI_Win_fence(0, win)); },
             [](MPI_Win win) { CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win)); }, true},
            {[=](MPI_Win win) {
                 CHECK_OK(MPI_Win_post(origins, 0, win));
                 CHECK_OK(MPI_Win_start(targets, 0, win));
             },
             [](MPI_Win win) {
                 CHECK_OK(MPI_Win_complete(win));
                 CHECK_OK(MPI_Win_wait(win));
             }},
            lock(MPI_LOCK_SHARED),
            lock(MPI_LOCK_EXCLUSIVE)};
}

// In memory that only process_vm_* reaches sums are delayed too, and puts with them.
CASE(updates_of_memory_that_is_not_mapped) {
    const int target = osct::right();
    const osct::Group targets(target), origins(osct::left());
    const std::int64_t one = 1;
    for (const WindowKind kind : {WindowKind::Create, WindowKind::Dynamic}) {
        Window window(kind, kWords * sizeof(std::int64_t));
        MPI_Win win = window;
        const bool reached = reached_by_process_vm(window, target);
        for (const EpochKind& epoch : every_epoch(target, targets, origins)) {
            // The fences of a dynamic window are immediate.
            const bool delayed = reached && !(epoch.is_fence && kind == WindowKind::Dynamic);
            const std::int64_t before = look(window, 0);
            MPI_Barrier(MPI_COMM_WORLD);
            epoch.begin(win);
            for (int i = 0; i < kRun; ++i)
                CHECK_OK(
                    MPI_Accumulate(&one, 1, MPI_INT64_T, target, window.at(target, 0), 1, MPI_INT64_T, MPI_SUM, win));
            const std::int64_t mark = before + kRun;
            CHECK_OK(MPI_Put(&mark, 1, MPI_INT64_T, target, window.at(target, 64), 1, MPI_INT64_T, win));
            MPI_Barrier(MPI_COMM_WORLD);
            const std::int64_t seen = look(window, 0) - before;
            CHECK(delayed ? seen < kRun : seen <= kRun);
            if (delayed) CHECK(look(window, 8) != mark);
            MPI_Barrier(MPI_COMM_WORLD);
            epoch.end(win);
            MPI_Barrier(MPI_COMM_WORLD);
            CHECK_EQ(look(window, 0), mark);
            CHECK_EQ(look(window, 8), mark);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

// Two targets with one exclusive lock each: the unlock of either performs its part, also if the batch began with the
// other's.
CASE(runs_under_two_locks) {
    SKIP_IF(size() < 3);
    Window window(WindowKind::Create, kWords * sizeof(std::int64_t));
    MPI_Win win = window;
    const std::int64_t one = 1;
    std::int64_t total = 0;
    for (const int first : {1, 2}) {
        total += kRun;
        if (rank() == 0) {
            CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
            CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win));
            for (int i = 0; i < kRun; ++i)
                for (const int target : {1, 2})
                    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win));
            CHECK_OK(MPI_Win_unlock(first, win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == first) CHECK_EQ(look(window, 0), total);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) CHECK_OK(MPI_Win_unlock(3 - first, win));
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 1 || rank() == 2) CHECK_EQ(look(window, 0), total);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// A window of which all but the first and the last bytes are adopted (worlds.cmake). Sums on these are delayed; those
// on whole pages keep their fast path meanwhile.
CASE(runs_at_the_edges_of_adopted_memory) {
    constexpr std::size_t kPage = 4096;
    constexpr std::size_t kBytes = 16 * kPage;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kPage, kBytes));
    std::memset(memory, 0, kBytes);
    auto* const words = reinterpret_cast<std::int64_t*>(memory + kPage / 2);
    constexpr std::size_t kLast = (kBytes - kPage) / sizeof(std::int64_t) - 1;
    constexpr std::size_t kInner = kLast / 2;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_create(words, static_cast<MPI_Aint>(kBytes - kPage), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    const char* const adopts = std::getenv("OSC_ADOPT");
    const bool adopted = osct::served_by_osc() && adopts != nullptr && std::strcmp(adopts, "always") == 0;
    const int target = (rank() + 1) % size();
    const auto now = [&](std::size_t word) { return std::atomic_ref<std::int64_t>(words[word]).load(); };
    const auto add = [&](std::int64_t operand, std::size_t word) {
        CHECK_OK(MPI_Accumulate(&operand, 1, MPI_INT64_T, target, static_cast<MPI_Aint>(word), 1, MPI_INT64_T, MPI_SUM,
                                win));
    };
    CHECK_OK(MPI_Win_lock_all(0, win));
    std::int64_t seen = 0;
    for (int i = 0; i < kRun; ++i) {
        for (const std::size_t word : {std::size_t{0}, kLast, kInner})
            add(i, word);
        const std::int64_t value = i;
        CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, target, 1 + i % 8, 1, MPI_INT64_T, win));
    }
    constexpr std::int64_t kSum = kRun * (kRun - 1) / 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (adopted && target != rank()) {
        CHECK(now(0) < kSum);
        CHECK(now(kLast) < kSum);
    }
    if (adopted) CHECK_EQ(now(kInner), kSum);
    MPI_Barrier(MPI_COMM_WORLD);
    // Elements of the edge and of whole pages at once: behind the run's updates of the edge.
    constexpr std::size_t kRow = kPage / sizeof(std::int64_t);
    const std::vector<std::int64_t> zeros(kRow);
    std::vector<std::int64_t> row(kRow);
    CHECK_OK(MPI_Get_accumulate(zeros.data(), kRow, MPI_INT64_T, row.data(), kRow, MPI_INT64_T, target, 0, kRow,
                                MPI_INT64_T, MPI_SUM, win));
    CHECK_OK(MPI_Fetch_and_op(zeros.data(), &seen, MPI_INT64_T, target, kLast, MPI_SUM, win));
    CHECK_OK(MPI_Win_flush(target, win));
    CHECK_EQ(row[0], kSum);
    CHECK_EQ(seen, kSum);
    CHECK_OK(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 8; ++i)
        CHECK_EQ(now(static_cast<std::size_t>(1 + i)), kRun - 8 + (i + 8 - kRun % 8) % 8);
    CHECK_OK(MPI_Win_free(&win));
    std::free(memory);
}

// Long runs of short puts and gets on the neighbour's memory of every kind. A put's origin is free at once, as it is
// without a batch; what a get returns is there after the flush.
CASE_BY_KIND(runs_of_puts_and_gets) {
    const int target = (rank() + 1) % size();
    const int origin = (rank() + size() - 1) % size();
    if (kind == WindowKind::Shared && !osct::shares_memory(MPI_COMM_WORLD)) return;
    Window win(kind, kWords * sizeof(std::int64_t));
    const auto at = [&](std::size_t word) { return win.at(target, word * sizeof(std::int64_t)); };
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
            CHECK_EQ(look(win, i), value(origin, i));
        for (std::size_t i = 0; i < kWords; ++i)
            CHECK_OK(MPI_Get(&found[i], 1, MPI_INT64_T, target, at(i), 1, MPI_INT64_T, win));
        CHECK_OK(round == 0 ? MPI_Win_flush_all(win) : MPI_Win_flush_local(target, win));
        CHECK_ALL(found.data(), kWords, [&](std::size_t i) { return value(rank(), i); });
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK_OK(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
}

// A wrong displacement or rank in the middle of a run is an error of its own call, and the others of the run are done.
CASE(errors_in_a_run_of_puts) {
    const int target = (rank() + 1) % size();
    Returning win(WindowKind::Create, kWords * sizeof(std::int64_t));
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
        CHECK_EQ(look(win, i), seven);
    CHECK_EQ(look(win, 201), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
