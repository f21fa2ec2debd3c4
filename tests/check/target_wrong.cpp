// Programs compiled for ThreadSanitizer whose processes load and store their window memory beside operations of others,
// for OSC_CHECK=2. The runner reads the comments of this file. No case depends on the time of an event. The runtime
// reports each 8 bytes of memory once, so each case has elements of its own.
#include <thread>

#include "cases.h"

namespace corpus {
namespace {

constexpr int kOrigin = 0;
constexpr int kTarget = 1;

volatile int g_seen = 0;
int g_value = 1;

void put_and_load_between_fences() {
    IntWindow window;
    MPI_Win_fence(0, window);
    only(kOrigin, [&] {
        MPI_Put(&g_value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);  // reported: data race
    });
    only(kTarget, [&] {
        g_seen = window.base()[0];  // reported: data race
    });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

void get_and_store_between_fences() {
    IntWindow window;
    MPI_Win_fence(0, window);
    only(kOrigin, [&] {
        MPI_Get(&g_value, 1, MPI_INT, kTarget, 2, 1, MPI_INT, window);  // reported: data race
    });
    only(kTarget, [&] {
        window.base()[2] = 1;  // reported: data race
    });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

void accumulate_and_load_in_an_exposure() {
    IntWindow window;
    const GroupOf peer(1 - rank());
    only(kOrigin, [&] {
        MPI_Win_start(peer, 0, window);
        MPI_Accumulate(&g_value, 1, MPI_INT, kTarget, 4, 1, MPI_INT, MPI_SUM, window);  // reported: data race
        MPI_Win_complete(window);
    });
    only(kTarget, [&] {
        MPI_Win_post(peer, 0, window);
        g_seen = window.base()[4];  // reported: data race
        MPI_Win_wait(window);
    });
}

void put_and_load_in_lock_all() {
    IntWindow window;
    MPI_Win_lock_all(0, window);
    only(kOrigin, [&] {
        MPI_Put(&g_value, 1, MPI_INT, kTarget, 6, 1, MPI_INT, window);  // reported: data race
        MPI_Win_flush(kTarget, window);
    });
    only(kTarget, [&] {
        g_seen = window.base()[6];  // reported: data race
    });
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
}

// The put is not complete at the barrier.
void put_behind_the_barrier() {
    IntWindow window;
    only(kOrigin, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window);
        MPI_Put(&g_value, 1, MPI_INT, kTarget, 8, 1, MPI_INT, window);  // reported: data race
    });
    MPI_Barrier(MPI_COMM_WORLD);
    only(kTarget, [&] {
        g_seen = window.base()[8];  // reported: data race
    });
    MPI_Barrier(MPI_COMM_WORLD);
    only(kOrigin, [&] { MPI_Win_unlock(kTarget, window); });
    MPI_Barrier(MPI_COMM_WORLD);
}

// The target loads before it receives the message.
void load_before_the_message() {
    IntWindow window;
    int token = 0;
    only(kOrigin, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window);
        MPI_Put(&g_value, 1, MPI_INT, kTarget, 10, 1, MPI_INT, window);  // reported: data race
        MPI_Win_unlock(kTarget, window);
        MPI_Send(&token, 1, MPI_INT, kTarget, 0, MPI_COMM_WORLD);
    });
    only(kTarget, [&] {
        g_seen = window.base()[10];  // reported: data race
        MPI_Recv(&token, 1, MPI_INT, kOrigin, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    MPI_Barrier(MPI_COMM_WORLD);
}

// Only the thread that has passed the barrier may know of the put.
void load_by_another_thread() {
    IntWindow window;
    only(kOrigin, [&] {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, window);
        MPI_Put(&g_value, 1, MPI_INT, kTarget, 14, 1, MPI_INT, window);  // reported: data race
        MPI_Win_unlock(kTarget, window);
    });
    std::thread other;
    only(kTarget, [&] {
        other = std::thread([&] {
            g_seen = window.base()[14];  // reported: data race
        });
    });
    MPI_Barrier(MPI_COMM_WORLD);
    if (other.joinable()) other.join();
}

// A lock of the target's own is shared, so that it orders nothing.
void store_under_a_shared_lock() {
    IntWindow window;
    MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window);
    only(kOrigin, [&] {
        MPI_Put(&g_value, 1, MPI_INT, kTarget, 16, 1, MPI_INT, window);  // reported: data race
    });
    only(kTarget, [&] {
        window.base()[16] = 1;  // reported: data race
    });
    MPI_Win_unlock(kTarget, window);
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

#define CASE(name) \
    { #name, &name }

const std::vector<Case> kWrong = {
    CASE(put_and_load_between_fences), CASE(get_and_store_between_fences), CASE(accumulate_and_load_in_an_exposure),
    CASE(put_and_load_in_lock_all),    CASE(put_behind_the_barrier),       CASE(load_before_the_message),
    CASE(load_by_another_thread),      CASE(store_under_a_shared_lock)};
const std::vector<Case> kHanging;

}  // namespace corpus
