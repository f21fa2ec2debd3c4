// Fence epochs between nodes, where origins await no replies. Operations that arrive before their target has made the
// fence wait for it; all are complete when the next fence returns at the target; and epochs do not overlap. The same
// holds with OSC_FENCE=immediate and deferred.
#include <time.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_fence", "MPI_Put", "MPI_Get", "MPI_Accumulate")

namespace {

constexpr int kLarge = 8192;  // longs that go directly

void pause(long ms) {
    const timespec time{0, ms * 1000000};
    ::nanosleep(&time, nullptr);
}

std::size_t longs(int count) {
    return static_cast<std::size_t>(count) * sizeof(long);
}

}  // namespace

// The target stores into its window until it calls the fence. Its stores must not overwrite puts of the next epoch.
CASE(operations_wait_for_the_targets_fence) {
    for (const int count : {1, kLarge}) {
        Window win(WindowKind::Allocate, longs(2 * count * size()));
        long* const mine = win.base<long>();
        const auto block = static_cast<std::size_t>(count);
        for (int turn = 1; turn <= 6; ++turn) {
            const int late = turn % size();
            std::vector<long> out(block, turn * 100 + rank());
            std::vector<long> in(block, -1);
            if (rank() == late) {
                pause(15);
                for (std::size_t i = 0; i < 2 * block * static_cast<std::size_t>(size()); ++i)
                    mine[i] = -turn;
            }
            CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
            CHECK_OK(
                MPI_Put(out.data(), count, MPI_LONG, late, win.at(late, 8 * count * rank()), count, MPI_LONG, win));
            CHECK_OK(MPI_Get(in.data(), count, MPI_LONG, late, win.at(late, 8 * count * (size() + rank())), count,
                             MPI_LONG, win));
            CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
            CHECK_ALL(in.data(), block, [&](std::size_t) { return -turn; });
            if (rank() == late)
                CHECK_ALL(mine, block * static_cast<std::size_t>(size()),
                          [&](std::size_t i) { return turn * 100 + static_cast<long>(i / block); });
        }
    }
}

// All processes derive the operations of all others from a seed. Each epoch has another set of pairs and sizes; some
// are empty. After the fence a process finds in its own memory all operations of the epoch and none of the next one.
CASE(each_epoch_is_whole_when_its_fence_returns) {
    constexpr int kEpochs = 60;
    Window win(WindowKind::Allocate, longs(kLarge + 1));
    long* const mine = win.base<long>();
    mine[0] = 0;
    long expected = 0;
    CHECK_OK(MPI_Win_fence(0, win));
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
        std::mt19937 random(static_cast<unsigned>(epoch) * 7919u);
        const bool idle = random() % 5 == 0;
        const bool large = random() % 4 == 0;
        std::vector<long> block(kLarge, epoch);
        int writer = -1;
        for (int origin = 0; origin < size(); ++origin) {
            for (int target = 0; target < size(); ++target) {
                const int many = idle || random() % 3 == 0 ? 0
                                 : random() % 8 == 0       ? 1500
                                                           : 1 + static_cast<int>(random() % 3);
                const bool writes = large && random() % 2 == 0 && target == (origin + 1) % size();
                if (target == rank()) expected += many;
                if (target == rank() && writes) writer = origin;
                if (origin != rank()) continue;
                const long one = 1;
                for (int i = 0; i < many; ++i)
                    MPI_Accumulate(&one, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, MPI_SUM, win);
                if (writes) MPI_Put(block.data(), kLarge, MPI_LONG, target, win.at(target, 8), kLarge, MPI_LONG, win);
            }
        }
        // Some epochs are two_fences from the next: nothing follows the one fence, and nothing precedes the other.
        const bool two_fences = epoch % 3 == 2;
        CHECK_OK(MPI_Win_fence(two_fences ? MPI_MODE_NOSUCCEED : 0, win));
        CHECK_EQ(mine[0], expected);
        if (writer >= 0) CHECK_ALL(mine + 1, std::size_t{kLarge}, [&](std::size_t) { return epoch; });
        CHECK_OK(MPI_Win_fence(two_fences ? MPI_MODE_NOPRECEDE : 0, win));
    }
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

// Epochs of large transfers with empty ones between them. The run with OSC_VERBOSE=strategy sees one change of
// strategy.
CASE(empty_epochs_cast_no_vote) {
    constexpr int kBytes = 65536;
    Window win(WindowKind::Allocate, kBytes);
    for (int turn = 1; turn <= 6; ++turn) {
        const std::vector<unsigned char> block(kBytes, static_cast<unsigned char>(turn));
        const int target = right();
        CHECK_OK(MPI_Win_fence(0, win));
        MPI_Put(block.data(), kBytes, MPI_BYTE, target, win.at(target, 0), kBytes, MPI_BYTE, win);
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_ALL(win.base<unsigned char>(), std::size_t{kBytes}, [&](std::size_t) { return turn; });
    }
}

// The same word is written by another process in each epoch, by load and store or by message: the last one counts.
CASE(epochs_come_one_after_the_other) {
    Window win(WindowKind::Allocate, longs(1));
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (int epoch = 0; epoch < 300; ++epoch) {
        const long value = epoch;
        if (epoch % size() == rank())
            for (int target = 0; target < size(); ++target)
                MPI_Put(&value, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, win);
        CHECK_OK(MPI_Win_fence(0, win));
        long seen = -1;
        const int other = (rank() + epoch) % size();
        MPI_Get(&seen, 1, MPI_LONG, other, win.at(other, 0), 1, MPI_LONG, win);
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_EQ(seen, value);
    }
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

// Operations under a lock are complete after a later fence, also after the window's first one.
CASE(a_fence_orders_operations_under_locks) {
    for (int turn = 1; turn <= 20; ++turn) {
        Window win(WindowKind::Allocate, longs(1));
        const long value = turn * 100 + rank();
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win));
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, right(), win.at(right(), 0), 1, MPI_LONG, win));
        CHECK_OK(MPI_Win_unlock(right(), win));
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_EQ(win.base<long>()[0], turn * 100 + left());
    }
}

// A process that has left a fence finds the epoch complete at every target, also under a lock and at a target that is
// still inside the fence.
CASE(locks_after_a_fence_see_the_whole_epoch) {
    constexpr int kLongs = 200;
    Window win(WindowKind::Allocate, longs(kLongs));
    const long one = 1;
    for (int turn = 1; turn <= 60; ++turn) {
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
        for (int step = 0; step < size(); ++step) {
            const int target = (rank() + step) % size();
            for (int i = 0; i < kLongs; ++i)
                MPI_Accumulate(&one, 1, MPI_LONG, target, win.at(target, 8 * i), 1, MPI_LONG, MPI_SUM, win);
        }
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        const int target = (rank() + turn) % size();
        std::vector<long> seen(kLongs);
        if (turn % 2 == 0)
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        else
            MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
        MPI_Get(seen.data(), kLongs, MPI_LONG, target, win.at(target, 0), kLongs, MPI_LONG, win);
        if (turn % 2 == 0)
            MPI_Win_unlock(target, win);
        else
            MPI_Win_unlock_all(win);
        CHECK_ALL(seen.data(), std::size_t{kLongs}, [&](std::size_t) { return static_cast<long>(turn) * size(); });
        MPI_Barrier(MPI_COMM_WORLD);  // they read what the next turn changes
    }
}

// Between two processes, each on a node of its own: data and the step of the barrier are one message.
CASE(an_epoch_with_a_put_is_few_messages) {
    const char* mode = std::getenv("OSC_FENCE");
    SKIP_IF(osct::on_one_node() || size() != 2 || (mode != nullptr && std::string(mode) == "immediate"));
    constexpr int kPairs = 200;
    Window win(WindowKind::Allocate, longs(1));
    const int other = 1 - rank();
    const auto pairs = [&](int count) {
        for (long i = 0; i < count; ++i) {
            CHECK_OK(MPI_Win_fence(0, win));
            CHECK_OK(MPI_Put(&i, 1, MPI_LONG, other, win.at(other, 0), 1, MPI_LONG, win));
            CHECK_OK(MPI_Win_fence(0, win));
            CHECK_EQ(win.base<long>()[0], i);
        }
    };
    pairs(10);
    const long long before = osct::counter("network.messages");
    pairs(kPairs);
    // Two steps of barriers, and a reply where nothing took it along; immediate: data and reply by themselves.
    CHECK(osct::counter("network.messages") - before <= 3 * kPairs + kPairs / 2);
}

CASE(the_strategy_is_agreed_and_reported) {
    MPI_Info info;
    MPI_Info_create(&info);
    // They need not agree.
    MPI_Info_set(info, "osc_fence", rank() == 0 ? "immediate" : "auto");
    long* base = nullptr;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate(sizeof(long), 1, info, MPI_COMM_WORLD, &base, &win));
    MPI_Info_set(info, "osc_fence", "deferred");
    CHECK_OK(MPI_Win_set_info(win, info));  // too late
    MPI_Info_free(&info);
    CHECK_EQ(osct::info_value(win, "osc_fence"), "immediate");
    const long value = rank();
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, right(), 0, 1, MPI_LONG, win));
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_EQ(base[0], left());
    CHECK_OK(MPI_Win_free(&win));
}
