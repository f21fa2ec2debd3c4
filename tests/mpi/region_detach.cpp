// Regions of dynamic windows that are detached and attached again: no origin reaches a region by its cache after the
// detach. The partners are on different nodes if there are several; on one node the results must be the same.
#include <algorithm>
#include <thread>
#include <vector>

#include "partner_regions.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach", "MPI_Put", "MPI_Get",
             "MPI_Win_flush")

using namespace osct;

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kFreedIsKept = true;  // the sanitizer does not reuse freed memory at once
#else
constexpr bool kFreedIsKept = false;
#endif

// MPI_Wait would hold the host's lock while it polls, which starves the other threads on a machine with few cores.
void await(MPI_Request request) {
    for (int done = 0; done == 0; std::this_thread::yield())
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

}  // namespace

// The same address is attached again with another size each time: origins must not use what they cached before.
CASE(a_region_comes_back_at_the_same_address) {
    Dynamic dynamic;
    std::vector<char> memory(2 * kLarge);
    const MPI_Aint there = of_the_partner(memory.data());
    MPI_Win_lock_all(0, dynamic.win);
    for (int round = 0; round < 30; ++round) {
        const std::size_t bytes = round % 2 == 0 ? kLarge : 2 * kLarge;
        std::fill(memory.begin(), memory.end(), 'o');
        CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), static_cast<MPI_Aint>(bytes)));
        MPI_Barrier(MPI_COMM_WORLD);
        const std::vector<char> out = pattern(bytes, rank() + round);
        CHECK_OK(put(out, there, dynamic.win));
        CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
        CHECK(get(bytes, there, dynamic.win) == out);
        if (bytes == kLarge) {
            // One byte too many: the call is refused, and no byte moves.
            CHECK_CLASS(put(pattern(kLarge + 1, 99), there, dynamic.win), MPI_ERR_RMA_RANGE);
            CHECK_CLASS(put(pattern(8, 99), there + static_cast<MPI_Aint>(kLarge) - 4, dynamic.win), MPI_ERR_RMA_RANGE);
            CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        std::vector<char> wanted = pattern(bytes, partner() + round);
        wanted.resize(2 * kLarge, 'o');
        CHECK(memory == wanted);
        CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_CLASS(put(out, there, dynamic.win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(put(pattern(8, 99), there, dynamic.win), MPI_ERR_RMA_RANGE);
        CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(memory == wanted);
    }
    MPI_Win_unlock_all(dynamic.win);
}

// Attach and detach of regions that no origin has cached cost no message and leave no memory behind.
CASE(uncached_regions_cost_no_message) {
    Attached attached(3 * kLarge);
    auto& [memory, dynamic, there] = attached;
    MPI_Win_lock_all(0, dynamic.win);
    CHECK_OK(put_and_flush(pattern(kLarge, 1), there, dynamic.win));
    MPI_Barrier(MPI_COMM_WORLD);
    const long long requests = osct::counter("network.requests");
    long resident = 0;
    for (int i = 0; i < 11000; ++i) {
        if (i == 1000) resident = osct::resident_kib();
        CHECK_OK(MPI_Win_attach(dynamic.win, memory.data() + 2 * kLarge, kLarge));
        CHECK_OK(MPI_Win_detach(dynamic.win, memory.data() + 2 * kLarge));
    }
    CHECK(kFreedIsKept || osct::resident_kib() - resident < 256);
    CHECK_EQ(osct::counter("network.requests"), requests);
    // Regions that an origin has cached leave no memory behind either.
    for (int i = 0; i < 80; ++i) {
        if (i == 30) resident = osct::resident_kib();
        CHECK_OK(MPI_Win_attach(dynamic.win, memory.data() + 2 * kLarge, kLarge));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(put_and_flush(pattern(4096, i), there + 2 * static_cast<MPI_Aint>(kLarge), dynamic.win));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_detach(dynamic.win, memory.data() + 2 * kLarge));
    }
    CHECK(kFreedIsKept || osct::resident_kib() - resident < 1024);
    MPI_Win_unlock_all(dynamic.win);
}

// The origin that has cached a region blocks in a call of the host until the region is detached. Its next access is
// refused.
CASE(detach_needs_no_action_of_the_origin) {
    Attached attached(kLarge);
    auto& [memory, dynamic, there] = attached;
    MPI_Win_lock_all(0, dynamic.win);
    for (int turn = 0; turn < 2; ++turn) {
        CHECK_OK(put_and_flush(pattern(kLarge, rank()), there, dynamic.win));
        MPI_Barrier(MPI_COMM_WORLD);
        int detached = 0;
        if ((rank() < partner()) == (turn == 0)) {
            CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
            if (partner() != rank()) MPI_Send(&detached, 1, MPI_INT, partner(), 1, MPI_COMM_WORLD);
        } else if (partner() != rank()) {
            MPI_Recv(&detached, 1, MPI_INT, partner(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_CLASS(put(pattern(kLarge, rank()), there, dynamic.win), MPI_ERR_RMA_RANGE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if ((rank() < partner()) == (turn == 0)) CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), kLarge));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(dynamic.win);
}

// A process replaces a region under its own exclusive lock. Meanwhile an origin that has cached the old region waits
// for the lock, with an operation that fits the new region only.
CASE(a_region_is_replaced_under_a_lock) {
    SKIP_IF(size() < 2);
    Dynamic dynamic;
    std::vector<char> memory(kLarge);
    const int owner = 0, origin = size() / 2;
    MPI_Aint there = address(memory.data());
    MPI_Bcast(&there, 1, MPI_AINT, owner, MPI_COMM_WORLD);
    for (int round = 0; round < 5; ++round) {
        const std::vector<char> out = pattern(kLarge, round);
        if (rank() == owner) CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), 8192));
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == origin) {
            MPI_Win_lock(MPI_LOCK_SHARED, owner, 0, dynamic.win);
            CHECK_OK(put_and_flush(pattern(8192, 77), there, dynamic.win, owner));
            CHECK_OK(MPI_Win_unlock(owner, dynamic.win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == owner) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner, 0, dynamic.win);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == origin) {
            MPI_Win_lock(MPI_LOCK_SHARED, owner, 0, dynamic.win);
            CHECK_OK(put(out, there, dynamic.win, owner));
            CHECK_OK(MPI_Win_unlock(owner, dynamic.win));
        }
        if (rank() == owner) {
            osct::compute(0.02);  // the origin queues its operation meanwhile
            CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
            CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), kLarge));
            CHECK_OK(MPI_Win_unlock(owner, dynamic.win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == owner) {
            CHECK(memory == out);
            CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
        }
    }
}

// Threads attach and detach regions of one window for threads of the partner.
CASE(threads_attach_and_detach) {
    constexpr int kThreads = 3;
    const int rounds = osct::full() ? 500 : 100;
    Dynamic dynamic;
    MPI_Win_lock_all(0, dynamic.win);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {  // the owner of regions
            for (int round = 0; round < rounds; ++round) {
                std::vector<char> memory(kLarge / 2 + static_cast<std::size_t>(t) * 8);
                CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), static_cast<MPI_Aint>(memory.size())));
                const MPI_Aint here = address(memory.data());
                int written = -1;
                MPI_Request announced, ended;
                MPI_Isend(&here, 1, MPI_AINT, partner(), 2 * t, MPI_COMM_WORLD, &announced);
                MPI_Irecv(&written, 1, MPI_INT, partner(), 2 * t + 1, MPI_COMM_WORLD, &ended);
                await(announced);
                await(ended);
                CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
                CHECK(memory == pattern(memory.size(), written));
            }
        });
        threads.emplace_back([&, t] {  // its partner
            for (int round = 0; round < rounds; ++round) {
                MPI_Aint there = 0;
                MPI_Request announced, ended;
                MPI_Irecv(&there, 1, MPI_AINT, partner(), 2 * t, MPI_COMM_WORLD, &announced);
                await(announced);
                const int seed = rank() * 1000 + round;
                const std::vector<char> out = pattern(kLarge / 2 + static_cast<std::size_t>(t) * 8, seed);
                CHECK_OK(put(out, there, dynamic.win));
                CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
                CHECK(get(out.size(), there, dynamic.win) == out);
                MPI_Isend(&seed, 1, MPI_INT, partner(), 2 * t + 1, MPI_COMM_WORLD, &ended);
                await(ended);
            }
        });
    }
    threads.clear();
    MPI_Win_unlock_all(dynamic.win);
}
