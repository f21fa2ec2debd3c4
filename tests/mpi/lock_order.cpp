// All processes request locks in the same order: no deadlock is possible, even if libosc acquires some locks after the
// call and whatever threads make the calls, and each lock excludes. With
// MPI_THREAD_MULTIPLE a thread that waits for a lock blocks itself only.
#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SERIALIZED, "MPI_Win_lock", "MPI_Win_unlock", "MPI_Put", "MPI_Get", "MPI_Win_flush",
             "MPI_Win_flush_all")

namespace {

constexpr WindowKind kKinds[] = {WindowKind::Allocate, WindowKind::Create, WindowKind::Dynamic};

/// Several windows of one kind.
struct Windows : std::deque<Window> {
    Windows(WindowKind kind, int count) {
        for (int i = 0; i < count; ++i)
            emplace_back(kind, 64);
    }
};

/// A lock: a window of several, and a target.
struct Place {
    int window;
    int target;
};

int rounds() {
    return osct::full() && osct::served_by_osc() ? 100 : 30;
}

// Adds one to the word of each place, not atomically.
void increment(Windows& windows, const std::vector<Place>& places) {
    std::vector<long> values(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        Window& win = windows[static_cast<std::size_t>(places[i].window)];
        MPI_Get(&values[i], 1, MPI_LONG, places[i].target, win.at(places[i].target, 0), 1, MPI_LONG, win);
    }
    for (const Place& place : places)
        MPI_Win_flush(place.target, windows[static_cast<std::size_t>(place.window)].handle());
    for (std::size_t i = 0; i < places.size(); ++i) {
        Window& win = windows[static_cast<std::size_t>(places[i].window)];
        ++values[i];
        MPI_Put(&values[i], 1, MPI_LONG, places[i].target, win.at(places[i].target, 0), 1, MPI_LONG, win);
        // The buffer is the next round's.
        MPI_Win_flush(places[i].target, win);
    }
}

void lock(const Windows& windows, const Place& place) {
    CHECK_OK(
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, place.target, 0, windows[static_cast<std::size_t>(place.window)].handle()));
}

void unlock(const Windows& windows, const Place& place) {
    CHECK_OK(MPI_Win_unlock(place.target, windows[static_cast<std::size_t>(place.window)].handle()));
}

using Work = std::function<void()>;

// Calls `work` in some thread and returns when it has ended. `step` counts the calls.
using Run = std::function<void(int step, const Work& work)>;

void directly(int, const Work& work) {
    work();
}

void in_new_thread(int, const Work& work) {
    std::thread(work).join();
}

/// A thread that calls what it is given, one after the other.
class Worker {
  public:
    Worker()
        : thread_([this] {
              for (given_.acquire(); work_ != nullptr; given_.acquire()) {
                  (*work_)();
                  done_.release();
              }
          }) {}
    ~Worker() {
        work_ = nullptr;
        given_.release();
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void run(const Work& work) {
        work_ = &work;
        given_.release();
        done_.acquire();
    }

  private:
    const Work* work_ = nullptr;
    std::binary_semaphore given_{0}, done_{0};
    std::thread thread_;  // the last member: it uses the others
};

// All processes take all places in one order, so many times; each word counts them. The operations of odd ranks come in
// the opposite order, which is legal under the locks.
void take_in_order(Windows& windows, const std::vector<Place>& places, const Run& run = directly,
                   int times = rounds()) {
    std::vector<Place> used = places;
    if (rank() % 2 == 1) std::reverse(used.begin(), used.end());
    int step = 0;
    for (int round = 0; round < times; ++round) {
        for (const Place& place : places)
            run(step++, [&] { lock(windows, place); });
        run(step++, [&] { increment(windows, used); });
        for (auto place = places.rbegin(); place != places.rend(); ++place)
            run(step++, [&] { unlock(windows, *place); });
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (const Place& place : places)
        if (place.target == rank())
            CHECK_EQ(windows[static_cast<std::size_t>(place.window)].base<long>()[0],
                     static_cast<long>(times) * size());
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

CASE(two_targets_of_one_window) {
    SKIP_IF(size() < 2);
    for (const WindowKind kind : kKinds) {
        Windows windows(kind, 1);
        take_in_order(windows, {{0, 0}, {0, 1}});
    }
}

CASE(two_windows) {
    SKIP_IF(size() < 2);
    for (const WindowKind kind : kKinds) {
        Windows two(kind, 2);
        take_in_order(two, {{0, 0}, {1, 1}});
        Windows same_target(kind, 2);
        take_in_order(same_target, {{1, 1}, {0, 1}, {0, 0}});
    }
}

// Processes take different places, in ascending order each; flushes in between acquire some locks early.
CASE(random_places) {
    constexpr int kWindows = 3;
    for (const WindowKind kind : kKinds) {
        Windows windows(kind, kWindows);
        std::minstd_rand random(static_cast<unsigned>(rank()) * 31 + 7);
        std::vector<long> mine(static_cast<std::size_t>(kWindows * size())), all(mine.size());
        for (int round = 0; round < rounds(); ++round) {
            std::vector<Place> places;
            for (int i = 0; i < kWindows * size(); ++i)
                if (random() % static_cast<unsigned>(size()) == 0) places.push_back({i % kWindows, i / kWindows});
            for (const Place& place : places) {
                lock(windows, place);
                if (random() % 4 == 0) {
                    CHECK_OK(MPI_Win_flush_all(windows[static_cast<std::size_t>(place.window)].handle()));
                }
                ++mine[static_cast<std::size_t>(place.target * kWindows + place.window)];
            }
            increment(windows, places);
            std::shuffle(places.begin(), places.end(), random);
            for (const Place& place : places)
                unlock(windows, place);
        }
        MPI_Allreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < kWindows; ++i)
            CHECK_EQ(windows[static_cast<std::size_t>(i)].base<long>()[0],
                     all[static_cast<std::size_t>(rank() * kWindows + i)]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

namespace {

// Places of one window, of two, and more of them than threads.
void take_in_threads(const Run& run) {
    const int times = rounds() / 4;
    for (const WindowKind kind : kKinds) {
        if (kind != WindowKind::Allocate && !osct::full()) continue;
        Windows one(kind, 1);
        take_in_order(one, {{0, 0}, {0, 1}}, run, times);
        Windows two(kind, 2);
        take_in_order(two, {{0, 0}, {1, 1}}, run, times);
        Windows many(kind, 2);
        take_in_order(many, {{1, 1}, {0, 0}, {1, 0}, {0, 1}}, run, times);
    }
}

}  // namespace

CASE(threads_that_end) {
    SKIP_IF(size() < 2);
    take_in_threads(in_new_thread);
}

CASE(the_main_thread_and_another) {
    SKIP_IF(size() < 2);
    Worker worker;
    take_in_threads([&](int step, const Work& work) {
        if (step % 2 == rank() % 2)
            worker.run(work);
        else
            work();
    });
}

CASE(any_thread_of_a_pool) {
    SKIP_IF(size() < 2);
    Worker workers[4];
    std::minstd_rand random(static_cast<unsigned>(rank()) * 17 + 3);
    take_in_threads([&](int, const Work& work) { workers[random() % 4].run(work); });
}

CASE(some_processes_have_threads) {
    SKIP_IF(size() < 2);
    take_in_threads(rank() % 2 == 0 ? in_new_thread : directly);
}

namespace {

void write(const Windows& windows, int target, long value) {
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target, windows[0].at(target, 0), 1, MPI_LONG, windows[0].handle()));
    CHECK_OK(MPI_Win_flush(target, windows[0].handle()));
}

// Rank 0 holds its lock until rank 1 has had that of rank 2. Rank 1 calls waiting() for the first and, in another
// thread, the function that it gets for the second.
void wait_for_held_lock(const std::function<void(Windows&, const Work& free_lock)>& waiting) {
    for (const WindowKind kind : kKinds) {
        Windows windows(kind, 1);
        if (rank() == 0) lock(windows, {0, 0});
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) {
            MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            unlock(windows, {0, 0});
        } else if (rank() == 1) {
            waiting(windows, [&] {
                lock(windows, {0, 2});
                write(windows, 2, 8);
                unlock(windows, {0, 2});
                MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            });
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) CHECK_EQ(windows[0].base<long>()[0], 7L);
        if (rank() == 2) CHECK_EQ(windows[0].base<long>()[0], 8L);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

}  // namespace

CASE(a_lock_and_a_thread_that_computes) {
    SKIP_IF(size() < 3 || osct::thread_level() < MPI_THREAD_MULTIPLE);
    HOST_CANNOT("blocks the second thread");
    wait_for_held_lock([](Windows& windows, const Work& free_lock) {
        std::jthread blocked([&] {
            lock(windows, {0, 0});
            osct::compute(0.05);
            write(windows, 0, 7);
            unlock(windows, {0, 0});
        });
        osct::compute(0.02);
        free_lock();
    });
}

// The thread with the first lock waits for the thread with the second one.
CASE(a_lock_and_a_thread_that_waits_for_the_other_one) {
    SKIP_IF(size() < 3 || osct::thread_level() < MPI_THREAD_MULTIPLE);
    HOST_CANNOT("blocks the second thread");
    wait_for_held_lock([](Windows& windows, const Work& free_lock) {
        std::thread other([&] {
            osct::compute(0.02);
            free_lock();
        });
        lock(windows, {0, 0});
        other.join();
        write(windows, 0, 7);
        unlock(windows, {0, 0});
    });
}

CASE(a_lock_and_a_thread_that_waits_in_a_pool) {
    SKIP_IF(size() < 3 || osct::thread_level() < MPI_THREAD_MULTIPLE);
    HOST_CANNOT("blocks the second thread");
    Worker first, second;
    wait_for_held_lock([&](Windows& windows, const Work& free_lock) {
        std::atomic<bool> had{false};
        std::jthread other([&] {
            osct::compute(0.02);
            second.run(free_lock);
            had = true;
        });
        first.run([&] {
            lock(windows, {0, 0});
            while (!had)
                std::this_thread::yield();
            write(windows, 0, 7);
            unlock(windows, {0, 0});
        });
    });
}
