// Programs compiled for ThreadSanitizer that load and store buffers of operations too early, for OSC_CHECK=2. The
// runner reads the comments of this file. The runtime reports each 8 bytes of memory once, so each case has variables
// of its own.
#include <thread>

#include "cases.h"

namespace corpus {
namespace {

constexpr int kOrigin = 0;
constexpr int kTarget = 1;

volatile int g_seen = 0;

// The origin's part of a fence epoch.
template <class F>
void in_fences(MPI_Win window, F&& part) {
    MPI_Win_fence(0, window);
    only(kOrigin, part);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

// The origin's part while it has locked the target.
template <class F>
void locked(MPI_Win window, F&& part) {
    only(kOrigin, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window);
        part();
        MPI_Win_unlock(kTarget, window);
    });
}

void load_of_a_result_before_the_fence() {
    IntWindow window;
    alignas(8) static int value = 0;
    in_fences(window, [&] {
        MPI_Get(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);  // reported: data race
        g_seen = value;                                               // reported: data race
    });
}

void load_of_a_result_before_the_unlock() {
    IntWindow window;
    alignas(8) static int value = 0;
    locked(window, [&] {
        MPI_Get(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);  // reported: data race
        g_seen = value;                                               // reported: data race
    });
}

void load_of_a_result_before_the_complete() {
    IntWindow window;
    alignas(8) static int value = 0;
    const GroupOf peer(1 - rank());
    only(kTarget, [&] { MPI_Win_post(peer, 0, window); });
    only(kOrigin, [&] {
        MPI_Win_start(peer, 0, window);
        MPI_Get(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);  // reported: data race
        g_seen = value;                                               // reported: data race
        MPI_Win_complete(window);
    });
    only(kTarget, [&] { MPI_Win_wait(window); });
}

void load_of_a_result_before_the_wait() {
    IntWindow window;
    alignas(8) static int value = 0;
    locked(window, [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rget(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window, &request);  // reported: data race
        g_seen = value;                                                          // reported: data race
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
}

void store_to_a_result() {
    IntWindow window;
    alignas(8) static int values[2] = {};
    locked(window, [&] {
        MPI_Get(values, 2, MPI_INT, kTarget, 0, 2, MPI_INT, window);  // reported: data race
        values[1] = 3;                                                // reported: data race
    });
}

void load_of_a_fetched_value() {
    IntWindow window;
    alignas(8) static int one = 1;
    alignas(8) static int before = 0;
    locked(window, [&] {
        MPI_Fetch_and_op(&one, &before, MPI_INT, kTarget, 0, MPI_SUM, window);  // reported: data race
        g_seen = before;                                                        // reported: data race
    });
}

// The value is what it was when the epoch ends.
void store_to_an_origin_buffer_and_back() {
    IntWindow window;
    alignas(8) static int value = 1;
    locked(window, [&] {
        MPI_Put(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);  // reported: data race
        for (const int next : {2, 1})
            value = next;  // reported: data race
    });
}

// The flush is of another target.
void load_behind_another_flush() {
    IntWindow window;
    alignas(8) static int value = 0;
    only(kOrigin, [&] {
        MPI_Win_lock_all(0, window);
        MPI_Get(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);  // reported: data race
        MPI_Win_flush(kOrigin, window);
        g_seen = value;  // reported: data race
        MPI_Win_unlock_all(window);
    });
}

// The program and libosc have different addresses of the window's memory.
void load_of_a_result_in_the_window() {
    IntWindow window;
    locked(window, [&] {
        MPI_Get(window.base() + 3, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);  // reported: data race
        g_seen = window.base()[3];                                               // reported: data race
    });
}

// Only the thread that has made the call may know the result.
void load_by_another_thread() {
    IntWindow window;
    alignas(8) static int value = 0;
    locked(window, [&] {
        std::thread other([&] { g_seen = value; });                   // reported: data race
        MPI_Get(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);  // reported: data race
        MPI_Win_flush(kTarget, window);
        other.join();
    });
}

}  // namespace

#define CASE(name) \
    { #name, &name }

const std::vector<Case> kWrong = {CASE(load_of_a_result_before_the_fence),
                                  CASE(load_of_a_result_before_the_unlock),
                                  CASE(load_of_a_result_before_the_complete),
                                  CASE(load_of_a_result_before_the_wait),
                                  CASE(store_to_a_result),
                                  CASE(load_of_a_fetched_value),
                                  CASE(store_to_an_origin_buffer_and_back),
                                  CASE(load_behind_another_flush),
                                  CASE(load_of_a_result_in_the_window),
                                  CASE(load_by_another_thread)};
const std::vector<Case> kHanging = {};

}  // namespace corpus
