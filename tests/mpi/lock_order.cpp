// All processes request locks in the same order: no deadlock is possible, even if libosc acquires some locks after the
// call, and each lock excludes.
#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock", "MPI_Win_unlock", "MPI_Put", "MPI_Get", "MPI_Win_flush",
             "MPI_Win_flush_all")

using osct::rank;
using osct::size;
using osct::Window;

namespace {

constexpr osct::WindowKind kKinds[] = {osct::WindowKind::Allocate, osct::WindowKind::Create, osct::WindowKind::Dynamic};

/// Several windows of one kind.
struct Windows : std::deque<Window> {
    Windows(osct::WindowKind kind, int count) {
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
    return osct::full() ? 1000 : 30;
}

// Adds one to the word of each place, not atomically.
void increment(Windows& windows, const std::vector<Place>& places) {
    std::vector<long> values(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        Window& win = windows[static_cast<std::size_t>(places[i].window)];
        MPI_Get(&values[i], 1, MPI_LONG, places[i].target, win.at(places[i].target, 0), 1, MPI_LONG, win.handle());
    }
    for (const Place& place : places)
        MPI_Win_flush(place.target, windows[static_cast<std::size_t>(place.window)].handle());
    for (std::size_t i = 0; i < places.size(); ++i) {
        Window& win = windows[static_cast<std::size_t>(places[i].window)];
        ++values[i];
        MPI_Put(&values[i], 1, MPI_LONG, places[i].target, win.at(places[i].target, 0), 1, MPI_LONG, win.handle());
        // The buffer is the next round's.
        MPI_Win_flush(places[i].target, win.handle());
    }
}

void lock(const Windows& windows, const Place& place) {
    CHECK_OK(
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, place.target, 0, windows[static_cast<std::size_t>(place.window)].handle()));
}

void unlock(const Windows& windows, const Place& place) {
    CHECK_OK(MPI_Win_unlock(place.target, windows[static_cast<std::size_t>(place.window)].handle()));
}

// All processes take all places in one order, so many times; each word counts them.
void take_in_order(Windows& windows, const std::vector<Place>& places) {
    for (int round = 0; round < rounds(); ++round) {
        for (const Place& place : places)
            lock(windows, place);
        increment(windows, places);
        for (auto place = places.rbegin(); place != places.rend(); ++place)
            unlock(windows, *place);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (const Place& place : places)
        if (place.target == rank())
            CHECK_EQ(windows[static_cast<std::size_t>(place.window)].base<long>()[0],
                     static_cast<long>(rounds()) * size());
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

CASE(two_targets_of_one_window) {
    SKIP_IF(size() < 2);
    for (const osct::WindowKind kind : kKinds) {
        Windows windows(kind, 1);
        take_in_order(windows, {{0, 0}, {0, 1}});
    }
}

CASE(two_windows) {
    SKIP_IF(size() < 2);
    for (const osct::WindowKind kind : kKinds) {
        Windows two(kind, 2);
        take_in_order(two, {{0, 0}, {1, 1}});
        Windows same_target(kind, 2);
        take_in_order(same_target, {{1, 1}, {0, 1}, {0, 0}});
    }
}

// Processes take different places, in ascending order each; flushes in between acquire some locks early.
CASE(random_places) {
    constexpr int kWindows = 3;
    for (const osct::WindowKind kind : kKinds) {
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
