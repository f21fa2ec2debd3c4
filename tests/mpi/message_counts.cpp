// How many messages synchronisation costs between nodes, which time cannot show on a busy machine: counted on all
// processes (osc_counter) over many epochs, so that a sign of life now and then does not matter. And how fairly a
// contended lock goes round.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock", "MPI_Win_unlock", "MPI_Fetch_and_op", "MPI_Put", "MPI_Win_lock_all",
             "MPI_Win_start", "MPI_Win_post")

namespace {

constexpr int kEpochs = 200;

// The number of messages sent by all processes so far. No process sends any during the call.
long long sent() {
    MPI_Barrier(MPI_COMM_WORLD);
    long long mine = osct::counter("network.messages");
    long long all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

// Messages per epoch, of which `epoch(i)` makes one, on all processes or on some.
template <class Epoch>
double per_epoch(Epoch&& epoch) {
    epoch(0);  // what is asked for once
    const long long before = sent();
    for (int i = 1; i <= kEpochs; ++i)
        epoch(i);
    return static_cast<double>(sent() - before) / kEpochs;
}

// Rank 0 locks the last rank, on another node, and does `operations(value)` there.
template <class Operations>
double per_lock(int type, Operations&& operations) {
    Window win(WindowKind::Allocate, 64);
    return per_epoch([&](int i) {
        if (rank() != 0) return;
        CHECK_OK(MPI_Win_lock(type, size() - 1, 0, win));
        operations(win, static_cast<long>(i));
        CHECK_OK(MPI_Win_unlock(size() - 1, win));
    });
}

}  // namespace

CASE(lock_all_sends_nothing_by_itself) {
    SKIP_IF(osct::on_one_node());
    Window win(WindowKind::Allocate, 64);
    const double messages = per_epoch([&](int) {
        CHECK_OK(MPI_Win_lock_all(0, win));
        CHECK_OK(MPI_Win_unlock_all(win));
    });
    CHECK(messages < 0.2);
}

CASE(an_operation_under_a_lock_is_one_round_trip) {
    SKIP_IF(osct::on_one_node());
    long value = 1;
    long got = 0;
    const int target = size() - 1;
    const auto put = [&](Window& win, long) {
        MPI_Put(&value, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, win);
    };
    const auto get = [&](Window& win, long) {
        MPI_Get(&got, 1, MPI_LONG, target, win.at(target, 8), 1, MPI_LONG, win);
    };
    const auto add = [&](Window& win, long) {
        MPI_Fetch_and_op(&value, &got, MPI_LONG, target, win.at(target, 16), MPI_SUM, win);
    };
    const auto accumulate = [&](Window& win, long) {
        MPI_Accumulate(&value, 1, MPI_LONG, target, win.at(target, 24), 1, MPI_LONG, MPI_SUM, win);
    };
    for (const int type : {MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED}) {
        CHECK(per_lock(type, put) < 2.2);
        CHECK(per_lock(type, get) < 2.2);
        CHECK(per_lock(type, add) < 2.2);
        CHECK(per_lock(type, accumulate) < 2.2);
        CHECK(per_lock(type, [&](Window& win, long i) {
                  put(win, i);
                  get(win, i);
                  add(win, i);
              }) < 2.2);
    }
    // Nothing is asked for if there is nothing to do.
    CHECK(per_lock(MPI_LOCK_EXCLUSIVE, [](Window&, long) {}) < 2.2);
}

// Post; data and complete together; and the reply to that, which the next message takes along.
CASE(post_start_complete_wait_costs_three_messages) {
    SKIP_IF(osct::on_one_node());
    Window win(WindowKind::Allocate, 64);
    const int target = size() - 1;
    const osct::Group other(rank() == 0 ? target : 0);
    const double messages = per_epoch([&](int i) {
        const long value = i;
        if (rank() == 0) {
            CHECK_OK(MPI_Win_start(other, 0, win));
            MPI_Put(&value, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, win);
            CHECK_OK(MPI_Win_complete(win));
        } else if (rank() == target) {
            CHECK_OK(MPI_Win_post(other, 0, win));
            CHECK_OK(MPI_Win_wait(win));
            CHECK_EQ(*win.base<long>(), value);
        }
    });
    CHECK(messages < 3.2);
}

// Several operations travel in one message. A single put or get that the origin awaits is written or read directly,
// unless it is so small that a message is as fast.
CASE(a_single_operation_goes_directly) {
    SKIP_IF(osct::on_one_node());
    constexpr int kLongs = 64;
    Window win(WindowKind::Allocate, 3 * kLongs * sizeof(long));
    const int target = size() - 1;
    if (rank() == 0) {
        long value[kLongs] = {};
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        const auto put = [&](std::size_t at) {
            MPI_Put(value, kLongs, MPI_LONG, target, win.at(target, at), kLongs, MPI_LONG, win);
        };
        put(0);  // with the request for the lock
        CHECK_OK(MPI_Win_flush(target, win));
        long long writes = osct::counter("network.writes");
        long long reads = osct::counter("network.reads");
        for (int i = 1; i <= kEpochs; ++i) {
            value[kLongs - 1] = i;
            put(0);
            CHECK_OK(i % 2 == 0 ? MPI_Win_flush(target, win) : MPI_Win_flush_all(win));
            long got[kLongs] = {};
            MPI_Get(got, kLongs, MPI_LONG, target, win.at(target, 0), kLongs, MPI_LONG, win);
            CHECK_OK(MPI_Win_flush(target, win));
            CHECK_EQ(got[kLongs - 1], value[kLongs - 1]);
        }
        CHECK_EQ(osct::counter("network.writes") - writes, kEpochs);
        CHECK_EQ(osct::counter("network.reads") - reads, kEpochs);
        writes = osct::counter("network.writes");
        reads = osct::counter("network.reads");
        const long long messages = osct::counter("network.messages");
        for (int i = 1; i <= kEpochs; ++i) {
            value[kLongs - 1] = i;
            put(0);
            put(2 * kLongs * sizeof(long));
            CHECK_OK(MPI_Win_flush(target, win));
        }
        CHECK_EQ(osct::counter("network.writes"), writes);
        CHECK_EQ(osct::counter("network.reads"), reads);
        CHECK(osct::counter("network.messages") - messages >= kEpochs);
        CHECK_OK(MPI_Win_unlock(target, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == target) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        CHECK_EQ(win.base<long>()[kLongs - 1], long{kEpochs});
        CHECK_EQ(win.base<long>()[3 * kLongs - 1], long{kEpochs});
        CHECK_OK(MPI_Win_unlock(target, win));
    }
}

// A put that begins where the previous one ends is merged with it. Other operations keep their order.
CASE(adjacent_puts_are_merged) {
    constexpr int kWords = 8192;
    Window win(WindowKind::Allocate, (kWords + 2) * sizeof(long));
    const int target = size() - 1;
    const auto put = [&](const void* from, int bytes, std::size_t at) {
        MPI_Put(from, bytes, MPI_BYTE, target, win.at(target, at), bytes, MPI_BYTE, win);
    };
    std::vector<long> words(kWords);
    for (int i = 0; i < kWords; ++i)
        words[static_cast<std::size_t>(i)] = 1000 + i;
    const long long before = sent();
    if (rank() == 0) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        for (std::size_t i = 0; i < words.size(); ++i)
            put(&words[i], sizeof(long), i * sizeof(long));
        CHECK_OK(MPI_Win_unlock(target, win));
    }
    const long long messages = sent() - before;
    // The lock, 64 KiB in one message, and a reply to each.
    if (!osct::on_one_node()) CHECK(messages <= 5);
    if (rank() == 0) {
        const char text[] = "abcdefghijklmnopqrstuvwx";
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        put(text, 8, 0);
        put(text + 8, 5, 8);    // an odd end
        put(text + 13, 3, 13);  // behind that
        put(text, 8, 8);        // over it
        put(text + 16, 8, 16);
        CHECK_OK(MPI_Win_unlock(target, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == target) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        CHECK_EQ(std::string(win.base<char>(), 24), std::string("abcdefghabcdefghqrstuvwx"));
        for (int i = 3; i < kWords; ++i)
            CHECK_EQ(win.base<long>()[i], 1000L + i);
        CHECK_OK(MPI_Win_unlock(target, win));
    }
}

// All processes acquire the same lock until it was held a given number of times in all. They hold it for longer than a
// message takes; otherwise the owner, which acquires it by one instruction, would finish before any request arrives.
CASE(a_contended_lock_is_fair_and_costs_few_messages) {
    const long wanted = osct::full() ? 10000 : 3000;
    constexpr double kHeld = 50e-6;
    Window win(WindowKind::Allocate, 64);
    *win.base<long>() = 0;
    const long one = 1;
    long mine = 0;
    const long long before = sent();
    for (long had = 0; had < wanted; ++mine) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        MPI_Fetch_and_op(&one, &had, MPI_LONG, 0, win.at(0, 0), MPI_SUM, win);
        CHECK_OK(MPI_Win_flush(0, win));
        osct::compute(kHeld);
        CHECK_OK(MPI_Win_unlock(0, win));
    }
    const double messages = static_cast<double>(sent() - before);
    std::vector<long> each(static_cast<std::size_t>(size()));
    MPI_Allgather(&mine, 1, MPI_LONG, each.data(), 1, MPI_LONG, MPI_COMM_WORLD);
    long all = 0;
    for (const long one_of_them : each)
        all += one_of_them;
    const auto [least, most] = std::minmax_element(each.begin(), each.end());
    if (rank() == 0)
        std::printf("%ld acquisitions, %ld to %ld by a process, %.2f messages each\n", all, *least, *most,
                    messages / static_cast<double>(all));
    // A process that starts late, or gets no core on a busy machine, has fewer turns; with few turns that weighs more.
    // Without fairness the ratio would be 7.
    if (size() >= 4) CHECK(*most <= 4.0 * static_cast<double>(*least));
    if (!osct::on_one_node()) CHECK(messages <= 4.1 * static_cast<double>(all));
}
