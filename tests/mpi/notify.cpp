// Notified RMA: each notification implies its data, and none is lost or counted twice.
#include <algorithm>
#include <thread>

#include "notified.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Win_flush_all", "MPI_Win_lock",
             "MPI_Win_unlock", "MPI_Put")

using osct::Notified;
using osct::rounds;

// A ring of puts. The target answers each with a notification, before which the origin writes nothing more. From a
// size on the data goes directly between nodes.
CASE_BY_KIND(a_notification_implies_its_data) {
    constexpr std::size_t kLargest = 50000;
    const Notified win(kind, kLargest * sizeof(int), 2);
    int round = 0;
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{300}, std::size_t{9000}, kLargest}) {
        std::vector<int> out(count);
        for (int i = 0; i < (count < 1000 ? rounds(8) : 2); ++i) {
            ++round;
            for (std::size_t at = 0; at < count; ++at)
                out[at] = round * 1000 + rank() + static_cast<int>(at);
            win.put(out.data(), static_cast<int>(count), MPI_INT, right(), 0, 0);
            CHECK_EQ(win.await(0, round), round);
            CHECK_ALL(win.base<int>(), count,
                      [&](std::size_t at) { return round * 1000 + left() + static_cast<int>(at); });
            win.signal(left(), 1);
            win.await(1, round);
            // The buffer is used again.
            CHECK_OK(MPI_Win_flush_all(win));
        }
    }
}

// All ranks add to one element and to one counter of rank 0.
CASE_BY_KIND(notifications_of_all_origins_add_up) {
    const int each = rounds(60);
    const Notified win(kind, 64, 3);
    const long one = 1;
    for (int i = 0; i < each; ++i)
        CHECK_OK(OSC_Accumulate_notify(&one, 1, MPI_LONG, 0, win.at(0, 8), 1, MPI_LONG, MPI_SUM, 1, win));
    if (rank() == 0) {
        const MPI_Count all = static_cast<MPI_Count>(each) * size();
        CHECK_EQ(win.await(1, all), all);
        CHECK_EQ(win.base<long>()[1], static_cast<long>(all));
        CHECK_EQ(win.value(0), 0);
        CHECK_EQ(win.value(2), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Many puts in flight, each to a place and a counter of its own.
CASE(a_stream_of_puts) {
    const int each = rounds(60);
    const Notified win(WindowKind::Allocate, static_cast<std::size_t>(each) * sizeof(long), each);
    std::vector<long> out(static_cast<std::size_t>(each));
    for (int i = 0; i < each; ++i) {
        out[static_cast<std::size_t>(i)] = 7 * i + 1;
        win.put(&out[static_cast<std::size_t>(i)], 1, MPI_LONG, right(), static_cast<std::size_t>(i) * 8, i);
    }
    for (int i = each - 1; i >= 0; --i) {
        CHECK_EQ(win.await(i, 1), 1);
        CHECK_EQ(win.base<long>()[i], 7L * i + 1);
    }
}

// The target writes after the notification of a get what the get must not return.
CASE_BY_KIND(a_notified_get_has_read) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{40000}}) {
        const Notified win(kind, count * sizeof(int), 2);
        std::vector<int> in(count, -1);
        for (int round = 1; round <= 3; ++round) {
            std::fill_n(win.base<int>(), count, round * 10 + rank());
            MPI_Win_sync(win);
            MPI_Barrier(MPI_COMM_WORLD);
            CHECK_OK(OSC_Get_notify(in.data(), static_cast<int>(count), MPI_INT, right(), win.at(right(), 0),
                                    static_cast<int>(count), MPI_INT, 0, win));
            win.await(0, round);
            std::fill_n(win.base<int>(), count, -2);
            CHECK_OK(MPI_Win_flush_all(win));
            CHECK_ALL(in.data(), count, [&](std::size_t) { return round * 10 + right(); });
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

CASE_BY_KIND(get_accumulate_notifies) {
    const Notified win(kind, 64, 1);
    const long out[2] = {rank() + 1L, 10};
    long in[2] = {-1, -1};
    for (int round = 1; round <= rounds(6); ++round) {
        CHECK_OK(OSC_Get_accumulate_notify(out, 2, MPI_LONG, in, 2, MPI_LONG, right(), win.at(right(), 0), 2, MPI_LONG,
                                           MPI_SUM, 0, win));
        CHECK_OK(MPI_Win_flush_all(win));
        CHECK_EQ(in[0], static_cast<long>(round - 1) * (rank() + 1));
        CHECK_EQ(win.await(0, round), round);
        const int left = (rank() + size() - 1) % size();
        CHECK_EQ(win.base<long>()[0], static_cast<long>(round) * (left + 1));
        CHECK_EQ(win.base<long>()[1], 10L * round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE_BY_KIND(request_forms) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{30000}}) {
        const Notified win(kind, count * sizeof(long), 4);
        const int elements = static_cast<int>(count);
        const std::vector<long> out(count, rank() + 5L), ones(count, 1);
        std::vector<long> in(count, -1), before(count, -1);
        const MPI_Aint disp = win.at(right(), 0);
        const auto wait = [](MPI_Request& request) { CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); };
        MPI_Request request;
        CHECK_OK(OSC_Rput_notify(out.data(), elements, MPI_LONG, right(), disp, elements, MPI_LONG, 0, win, &request));
        wait(request);
        win.await(0, 1);
        CHECK_ALL(win.base<long>(), count, [&](std::size_t) { return left() + 5L; });
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(OSC_Raccumulate_notify(ones.data(), elements, MPI_LONG, right(), disp, elements, MPI_LONG, MPI_SUM, 1,
                                        win, &request));
        wait(request);
        win.await(1, 1);
        CHECK_ALL(win.base<long>(), count, [&](std::size_t) { return left() + 6L; });
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(OSC_Rget_accumulate_notify(ones.data(), elements, MPI_LONG, before.data(), elements, MPI_LONG, right(),
                                            disp, elements, MPI_LONG, MPI_SUM, 2, win, &request));
        wait(request);
        CHECK_ALL(before.data(), count, [&](std::size_t) { return rank() + 6L; });
        win.await(2, 1);
        CHECK_ALL(win.base<long>(), count, [&](std::size_t) { return left() + 7L; });
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(OSC_Rget_notify(in.data(), elements, MPI_LONG, right(), disp, elements, MPI_LONG, 3, win, &request));
        wait(request);
        CHECK_ALL(in.data(), count, [&](std::size_t) { return rank() + 7L; });
        win.await(3, 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Each rank consumes what all the others produce, by wait-any and reset over a thousand counters.
CASE(wait_any_finds_every_notification) {
    constexpr int kCounters = 1000;
    const int each = rounds(60);
    const Notified win(WindowKind::Allocate, 64, kCounters);
    for (int i = 0; i < each; ++i)
        for (int target = 0; target < size(); ++target)
            win.signal(target, (i * 37 + rank() * 101) % kCounters);
    MPI_Count seen = 0;
    while (seen < static_cast<MPI_Count>(each) * size()) {
        int index = -1;
        MPI_Count value = 0, old = 0;
        CHECK_OK(OSC_Win_wait_any_notify(win, 0, kCounters, 1, &index, &value));
        CHECK(index >= 0 && index < kCounters && value >= 1);
        if (index < 0) break;
        CHECK_OK(OSC_Win_reset_notify_value(win, index, &old));
        CHECK(old >= value);
        seen += old;
    }
    CHECK_EQ(seen, static_cast<MPI_Count>(each) * size());
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < kCounters; i += 111)
        CHECK_EQ(win.value(i), 0);
}

CASE(wait_any_looks_at_its_range_only) {
    const Notified win(WindowKind::Allocate, 64, 8);
    win.signal(rank(), 1);
    win.signal(rank(), 6);
    win.await(1, 1);
    win.await(6, 1);
    int index = -1;
    MPI_Count value = 0;
    CHECK_OK(OSC_Win_wait_any_notify(win, 2, 6, 1, &index, &value));
    CHECK_EQ(index, 6);
    CHECK_OK(OSC_Win_wait_any_notify(win, 0, 8, 1, &index, nullptr));
    CHECK_EQ(index, 1);
}

// Resets take each notification once, while others arrive.
CASE(resets_lose_nothing) {
    const int each = rounds(60);
    const Notified win(WindowKind::Allocate, 64, 1);
    MPI_Count seen = 0;
    for (int i = 0; i < each; ++i) {
        win.signal((rank() + 1) % size(), 0);
        MPI_Count old = 0;
        CHECK_OK(OSC_Win_reset_notify_value(win, 0, &old));
        seen += old;
    }
    while (seen < each) {
        MPI_Count old = 0;
        win.await(0, 1);
        CHECK_OK(OSC_Win_reset_notify_value(win, 0, &old));
        seen += old;
    }
    CHECK_EQ(seen, each);
}

CASE(test_sees_what_wait_sees) {
    const Notified win(WindowKind::Allocate, 64, 2);
    for (int round = 1; round <= rounds(6); ++round) {
        int flag = -1;
        MPI_Count value = -1;
        CHECK_OK(OSC_Win_test_notify(win, 0, round, &flag, &value));
        CHECK_EQ(flag, 0);
        CHECK_EQ(value, round - 1);
        MPI_Barrier(MPI_COMM_WORLD);
        const int out = round * 3;
        win.put(&out, 1, MPI_INT, right(), 0, 0);
        while (flag == 0)
            CHECK_OK(OSC_Win_test_notify(win, 0, round, &flag, &value));
        CHECK_EQ(value, round);
        CHECK_EQ(win.base<int>()[0], round * 3);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK_OK(OSC_Win_wait_notify(win, 1, 0, nullptr));
}

// A process that sleeps in its wait is woken.
CASE(a_late_notification_ends_a_sleep) {
    SKIP_IF(size() < 2);
    const Notified win(WindowKind::Allocate, 64, 1);
    const long out = 4711;
    if (rank() == 0) {
        osct::compute(0.05);
        for (int target = 1; target < size(); ++target)
            win.put(&out, 1, MPI_LONG, target, 0, 0);
    } else {
        win.await(0, 1);
        CHECK_EQ(win.base<long>()[0], out);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// The peer notifies when its synchronous message has been received, and only this process's polls of the counter drive
// the host that receives it.
CASE(polls_drive_the_host) {
    SKIP_IF(size() < 2);
    const Notified win(WindowKind::Allocate, 64, 3);
    for (int counter = 0; counter < 3; ++counter) {
        int message = counter;
        if (rank() == 0) {
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Irecv(&message, 1, MPI_INT, 1, counter, MPI_COMM_WORLD, &request);
            MPI_Count value = 0;
            for (int flag = 0; value == 0;) {
                if (counter == 0) CHECK_OK(OSC_Win_get_notify_value(win, counter, &value));
                if (counter == 1) CHECK_OK(OSC_Win_test_notify(win, counter, 1, &flag, &value));
                if (counter == 2) CHECK_OK(OSC_Win_reset_notify_value(win, counter, &value));
            }
            CHECK_EQ(value, 1);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (rank() == 1) {
            MPI_Ssend(&message, 1, MPI_INT, 0, counter, MPI_COMM_WORLD);
            win.signal(0, counter);
        }
    }
}

// A datatype with gaps, which no fast path takes.
CASE(strided_puts) {
    MPI_Datatype every_second = MPI_DATATYPE_NULL;
    MPI_Type_vector(100, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    for (WindowKind kind : kAllWindowKinds) {
        const Notified win(kind, 1024, 1);
        for (int round = 1; round <= rounds(4); ++round) {
            std::vector<int> out(100, 100 * round + rank());
            CHECK_OK(OSC_Put_notify(out.data(), 100, MPI_INT, right(), win.at(right(), 0), 1, every_second, 0, win));
            win.await(0, round);
            CHECK_ALL(win.base<int>(), 200, [&](std::size_t i) { return i % 2 == 0 ? 100 * round + left() : 0; });
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    MPI_Type_free(&every_second);
}

// Threads that wait at different counters and at the same one; each thread's data is its own.
CASE(threads_wait_and_notify) {
    SKIP_IF(osct::thread_level() != MPI_THREAD_MULTIPLE);
    constexpr int kThreads = 4;
    const int each = rounds(10);
    const Notified win(WindowKind::Allocate, 64, kThreads + 1);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            for (int round = 1; round <= each; ++round) {
                const long out = round * 10L + t;
                win.put(&out, 1, MPI_LONG, right(), static_cast<std::size_t>(t) * 8, t);
                win.await(t, round);
                CHECK_EQ(win.base<long>()[t], out);
                // The next round writes when all threads of all ranks have seen this one.
                for (int target = 0; target < size(); ++target)
                    win.signal(target, kThreads);
                win.await(kThreads, static_cast<MPI_Count>(round) * kThreads * size());
                CHECK_OK(MPI_Win_flush_all(win));
            }
        });
}
