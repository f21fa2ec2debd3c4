// MPI_THREAD_MULTIPLE: threads inside one epoch, and collectives of two windows that two ranks enter in opposite order.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "dynamic_window.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Accumulate", "MPI_Win_fence", "MPI_Win_lock", "MPI_Win_unlock",
             "MPI_Fetch_and_op", "MPI_Win_flush", "MPI_Put", "MPI_Get")

namespace {

constexpr int kThreads = 4;

template <class F>
void in_threads(F work) {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([=] { work(t); });
}

}  // namespace

// An exclusive lock keeps other ranks out, not other threads of this one: accumulates must still be atomic.
CASE_BY_KIND(accumulates_inside_one_exclusive_lock) {
    const int each = osct::served_by_osc() ? 5000 : 200;
    const long one = 1;
    Window win(kind, 64);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    in_threads([&](int) {
        for (int i = 0; i < each; ++i)
            MPI_Accumulate(&one, 1, MPI_LONG, 0, win.at(0, 0), 1, MPI_LONG, MPI_SUM, win);
    });
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK_EQ(win.base<long>()[0], static_cast<long>(each) * kThreads * size());
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE_BY_KIND(threads_share_lock_all) {
    Window win(kind, 1024);
    MPI_Win_lock_all(0, win);
    in_threads([&](int t) {
        const int target = (rank() + t) % size();
        const long one = 1;
        for (int i = 0; i < 200; ++i) {
            long old = -1, in = -1;
            const long out = i * 10 + t;
            const auto slot = static_cast<std::size_t>(8 + (rank() * kThreads + t) * 8);
            MPI_Fetch_and_op(&one, &old, MPI_LONG, target, win.at(target, 0), MPI_SUM, win);
            MPI_Put(&out, 1, MPI_LONG, target, win.at(target, slot), 1, MPI_LONG, win);
            MPI_Win_flush(target, win);
            MPI_Get(&in, 1, MPI_LONG, target, win.at(target, slot), 1, MPI_LONG, win);
            MPI_Win_flush(target, win);
            CHECK(old >= 0);
            CHECK_EQ(in, out);
        }
    });
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(win.base<long>()[0], 200L * kThreads);
    MPI_Barrier(MPI_COMM_WORLD);
}

// One thread puts, another flushes, a third reads back.
CASE_BY_KIND(flushes_by_another_thread) {
    Window win(kind, 64);
    const int target = (rank() + 1) % size();
    MPI_Win_lock_all(0, win);
    for (int i = 1; i <= 20; ++i) {
        int out = rank() * 100 + i, in = -1;
        std::thread([&] { CHECK_OK(MPI_Put(&out, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win)); }).join();
        std::thread([&] { CHECK_OK(MPI_Win_flush(target, win)); }).join();
        out = -1;
        std::thread([&] { CHECK_OK(MPI_Get(&in, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win)); }).join();
        CHECK_OK(MPI_Win_flush_local(target, win));
        CHECK_EQ(in, rank() * 100 + i);
    }
    MPI_Win_unlock_all(win);
}

// A pointer comes with the post, also to a thread that asks for one while another thread's query awaits it.
CASE(queries_in_a_start_epoch) {
    HOST_CANNOT("shared_query is refused on windows that allocate_shared did not make (MPI 4.1 admits it)");
    SKIP_IF(size() < 2);
    for (long round = 0; round < 20; ++round) {
        Window win(WindowKind::Allocate, 64);
        const osct::Group other(rank() == 0 ? 1 : 0);
        win.base<long>()[0] = -1;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0 && osct::same_node(1)) {
            MPI_Win_start(other, 0, win);
            in_threads([&](int) {
                MPI_Aint bytes = 0;
                int unit = 0;
                volatile long* there = nullptr;
                CHECK_OK(MPI_Win_shared_query(win, 1, &bytes, &unit, &there));
                CHECK_EQ(there[0], round);
            });
            MPI_Win_complete(win);
        } else if (rank() == 1 && osct::same_node(0)) {
            osct::compute(0.001);
            win.base<long>()[0] = round;
            MPI_Win_post(other, 0, win);
            MPI_Win_wait(win);
        }
    }
}

// Two windows of one communicator, one thread each; even ranks enter the fence of one first, odd ranks of the other.
CASE(fences_in_opposite_order) {
    Window a(WindowKind::Allocate, 64), b(WindowKind::Allocate, 64);
    const auto fences = [&](const Window& win, bool late) {
        MPI_Win_fence(0, win);
        for (int i = 0; i < 50; ++i) {
            if (late) osct::compute(0.0002);
            const int out = rank() * 1000 + i;
            MPI_Put(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win);
            MPI_Win_fence(0, win);
            CHECK_EQ(win.base<int>()[0], left() * 1000 + i);
            MPI_Win_fence(0, win);
        }
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    };
    std::jthread other([&] { fences(b, rank() % 2 == 0); });
    fences(a, rank() % 2 == 1);
}

CASE(a_window_for_each_thread) {
    std::vector<Window*> windows;
    for (int t = 0; t < kThreads; ++t)
        windows.push_back(new Window(kAllWindowKinds[t], 64));
    in_threads([&](int t) {
        const Window& win = *windows[static_cast<std::size_t>(t)];
        const int one = 1;
        for (int i = 0; i < 100; ++i) {
            const int target = (rank() + i) % size();
            MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
            MPI_Accumulate(&one, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, MPI_SUM, win);
            MPI_Win_unlock(target, win);
        }
    });
    MPI_Barrier(MPI_COMM_WORLD);
    for (Window* win : windows) {
        int sum = win->base<int>()[0];
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK_EQ(sum, 100 * size());
        delete win;
    }
}

// Rank 0 holds its own lock until a message of another thread of rank 1 comes; that thread's lock of rank 2 is free.
CASE_BY_KIND(a_blocked_lock_blocks_its_thread_only) {
    SKIP_IF(size() < 3);
    HOST_CANNOT("blocks the second thread");
    Window win(kind, 64);
    const auto write = [&](int target, long value) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target, win.at(target, 0), 1, MPI_LONG, win));
        CHECK_OK(MPI_Win_unlock(target, win));
    };
    if (rank() == 0) CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_OK(MPI_Win_unlock(0, win));
    } else if (rank() == 1) {
        std::jthread blocked([&] { write(0, 7); });
        osct::compute(0.02);
        std::thread([&] { write(2, 8); }).join();
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() % 2 == 0 && rank() < 3) CHECK_EQ(win.base<long>()[0], 7L + rank() / 2);
    MPI_Barrier(MPI_COMM_WORLD);
}

// A thread uses one region of the right neighbour all the time, while another region comes and goes, which the main
// thread uses. An operation on a region that has gone is refused.
CASE(a_region_comes_and_goes_beside_the_one_in_use) {
    SKIP_IF(size() < 2);
    constexpr std::size_t kBytes = 65536;
    for (const bool arena : {true, false}) {
        const osct::Dynamic dynamic;
        const MPI_Win win = dynamic.win;
        void* memory[2] = {};
        MPI_Aint there[2] = {};
        for (int i = 0; i < 2; ++i) {
            if (arena)
                MPI_Alloc_mem(kBytes, MPI_INFO_NULL, static_cast<void*>(&memory[i]));
            else
                memory[i] = std::aligned_alloc(4096, kBytes);
            std::memset(memory[i], 0, kBytes);
            const MPI_Aint mine = osct::address(memory[i]);
            MPI_Sendrecv(&mine, 1, MPI_AINT, (rank() + size() - 1) % size(), 0, &there[i], 1, MPI_AINT, right(), 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        CHECK_OK(MPI_Win_attach(win, memory[0], kBytes));
        MPI_Win_lock_all(0, win);
        MPI_Barrier(MPI_COMM_WORLD);
        std::atomic<bool> over{false};
        std::atomic<int> wrong{0};
        std::atomic<long> added{0};
        std::thread user([&] {
            const long one = 1;
            for (long i = 1; !over.load(); ++i) {
                long back = 0, before = 0;
                MPI_Put(&i, 1, MPI_LONG, right(), there[0] + 8, 1, MPI_LONG, win);
                MPI_Win_flush(right(), win);
                MPI_Get(&back, 1, MPI_LONG, right(), there[0] + 8, 1, MPI_LONG, win);
                MPI_Fetch_and_op(&one, &before, MPI_LONG, right(), there[0] + 16, MPI_SUM, win);
                MPI_Win_flush(right(), win);
                if (back != i || before != added.fetch_add(1)) wrong.fetch_add(1);
                if (i % 64 == 0) std::this_thread::yield();
            }
        });
        for (long round = 0; round < 10; ++round) {
            CHECK_OK(MPI_Win_attach(win, memory[1], kBytes));
            MPI_Barrier(MPI_COMM_WORLD);
            for (int use = 0; use < 6; ++use) {
                const long sent = 100 * round + use;
                long back = -1;
                CHECK_OK(MPI_Put(&sent, 1, MPI_LONG, right(), there[1] + use * 8192, 1, MPI_LONG, win));
                CHECK_OK(MPI_Win_flush(right(), win));
                CHECK_OK(MPI_Get(&back, 1, MPI_LONG, right(), there[1] + use * 8192, 1, MPI_LONG, win));
                CHECK_OK(MPI_Win_flush(right(), win));
                CHECK_EQ(back, sent);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            CHECK_OK(MPI_Win_detach(win, memory[1]));
            MPI_Barrier(MPI_COMM_WORLD);
            if (osct::served_by_osc())
                CHECK(MPI_Put(&round, 1, MPI_LONG, right(), there[1], 1, MPI_LONG, win) != MPI_SUCCESS);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        over.store(true);
        user.join();
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(wrong.load(), 0);
        CHECK_OK(MPI_Win_detach(win, memory[0]));
        for (void* const piece : memory)
            if (arena)
                MPI_Free_mem(piece);
            else
                std::free(piece);
    }
}
