// Programs compiled for ThreadSanitizer that load and store buffers of operations as soon as they may, for OSC_CHECK=2.
#include <mutex>
#include <thread>
#include <vector>

#include "cases.h"

namespace corpus {
namespace {

constexpr int kOrigin = 0;
constexpr int kTarget = 1;

volatile int g_seen = 0;

void load_behind_each_call_that_completes() {
    IntWindow window;
    int value = 0;
    const auto get = [&] { MPI_Get(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window); };
    const auto use = [&] { value += 1; };
    MPI_Win_fence(0, window);
    only(kOrigin, get);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    only(kOrigin, use);
    const GroupOf peer(1 - rank());
    only(kTarget, [&] { MPI_Win_post(peer, 0, window); });
    only(kOrigin, [&] {
        MPI_Win_start(peer, 0, window);
        get();
        MPI_Win_complete(window);
        use();
    });
    only(kTarget, [&] { MPI_Win_wait(window); });
    only(kOrigin, [&] {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, window);
        get();
        MPI_Win_unlock(kTarget, window);
        use();
        MPI_Win_lock_all(0, window);
        get();
        MPI_Win_flush(kTarget, window);
        use();
        get();
        MPI_Win_flush_all(window);
        use();
        get();
        MPI_Win_flush_local(kTarget, window);
        use();
        get();
        MPI_Win_flush_local_all(window);
        use();
        get();
        MPI_Win_unlock_all(window);
        use();
    });
}

void load_behind_the_completion_of_a_request() {
    IntWindow window;
    only(kOrigin, [&] {
        int values[4] = {};
        MPI_Request requests[4] = {};
        MPI_Win_lock_all(0, window);
        for (int i = 0; i < 4; ++i)
            MPI_Rget(&values[i], 1, MPI_INT, kTarget, i, 1, MPI_INT, window, &requests[i]);
        MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
        g_seen = values[2];
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (const int value : values)
            g_seen = value;
        MPI_Win_unlock_all(window);
    });
}

// Loads of what a put reads, stores beside what it reads, and its buffer at its next use.
void buffers_of_puts() {
    IntWindow window;
    int values[3] = {1, 2, 3};
    only(kOrigin, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window);
        for (int round = 0; round < 3; ++round) {
            MPI_Put(&values[1], 1, MPI_INT, kTarget, round, 1, MPI_INT, window);
            g_seen = values[1];
            values[0] = round;
            values[2] = round;
            MPI_Win_flush_local(kTarget, window);
            values[1] = round;
        }
        MPI_Win_unlock(kTarget, window);
    });
}

// A derived type leaves gaps, which are the program's.
void gaps_of_a_type() {
    IntWindow window;
    int values[8] = {};
    MPI_Datatype even = MPI_DATATYPE_NULL;
    MPI_Type_vector(4, 1, 2, MPI_INT, &even);
    MPI_Type_commit(&even);
    only(kOrigin, [&] {
        MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window);
        MPI_Get(values, 1, even, kTarget, 0, 4, MPI_INT, window);
        for (int i = 1; i < 8; i += 2)
            values[i] = i;
        MPI_Win_unlock(kTarget, window);
    });
    MPI_Type_free(&even);
}

// Results come into this process's own window.
void results_in_the_window() {
    IntWindow window;
    for (int round = 0; round < 3; ++round) {
        MPI_Win_fence(0, window);
        only(kOrigin, [&] {
            MPI_Get(window.base() + 10, 10, MPI_INT, kTarget, 30, 10, MPI_INT, window);
            window.base()[20] = round;
        });
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
        for (int i = 0; i < 64; ++i)
            window.base()[i] += 1;
    }
}

// Locks of the program order its threads.
void another_thread_behind_a_lock() {
    IntWindow window;
    only(kOrigin, [&] {
        std::mutex mutex;
        int value = 0;
        std::thread other([&] {
            const std::lock_guard lock(mutex);
            g_seen = value;
        });
        {
            const std::lock_guard lock(mutex);
            MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window);
            MPI_Get(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);
            MPI_Win_unlock(kTarget, window);
        }
        other.join();
        g_seen = value;
    });
}

// Memory that was a buffer is another variable's when the epoch has ended.
void memory_again() {
    IntWindow window;
    for (int round = 0; round < 50; ++round) {
        std::vector<int> values(64, round);
        MPI_Win_fence(0, window);
        only(kOrigin, [&] { MPI_Get(values.data(), 64, MPI_INT, kTarget, 0, 64, MPI_INT, window); });
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    }
}

// More operations at once than there are fibres.
void many_requests() {
    IntWindow window;
    only(kOrigin, [&] {
        constexpr int kCount = 400;
        std::vector<int> values(kCount);
        std::vector<MPI_Request> requests(kCount);
        MPI_Win_lock_all(0, window);
        for (int i = 0; i < kCount; ++i)
            MPI_Rget(&values[static_cast<std::size_t>(i)], 1, MPI_INT, kTarget, i % 64, 1, MPI_INT, window,
                     &requests[static_cast<std::size_t>(i)]);
        MPI_Waitall(kCount, requests.data(), MPI_STATUSES_IGNORE);
        for (const int value : values)
            g_seen = value;
        MPI_Win_unlock_all(window);
    });
}

}  // namespace

#define CASE(name) \
    { #name, &name }

const std::vector<Case> kRight = {CASE(load_behind_each_call_that_completes),
                                  CASE(load_behind_the_completion_of_a_request),
                                  CASE(buffers_of_puts),
                                  CASE(gaps_of_a_type),
                                  CASE(results_in_the_window),
                                  CASE(another_thread_behind_a_lock),
                                  CASE(memory_again),
                                  CASE(many_requests)};

}  // namespace corpus
