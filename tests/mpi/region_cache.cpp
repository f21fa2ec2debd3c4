// Dynamic windows whose regions others have come to know: transfers of every size go by what an origin remembers of its
// target's regions, and nobody reaches a region by it after the region was detached. Most is about partners on
// different nodes; on one node the same program shows the same.
#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "dynamic_window.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach", "MPI_Put", "MPI_Get",
             "MPI_Accumulate", "MPI_Win_flush")

using osct::address;
using osct::Dynamic;
using osct::rank;
using osct::size;

namespace {

constexpr std::size_t kLarge = 64 * 1024;
#ifdef __SANITIZE_ADDRESS__
constexpr bool kFreedIsKept = true;  // the sanitizer does not give freed memory out again at once
#else
constexpr bool kFreedIsKept = false;
#endif

/// A rank of another node, where there is one; the same pairs for both.
int partner() {
    const int half = size() / 2;
    return half == 0 ? rank() : rank() < half ? rank() + half : rank() - half < half ? rank() - half : rank();
}

/// The partner's address of the same thing.
MPI_Aint of_the_partner(const void* mine) {
    const MPI_Aint here = address(mine);
    MPI_Aint there = 0;
    MPI_Sendrecv(&here, 1, MPI_AINT, partner(), 0, &there, 1, MPI_AINT, partner(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return there;
}

std::vector<char> pattern(std::size_t bytes, int seed) {
    std::vector<char> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<char>(static_cast<std::size_t>(seed) * 31 + i * 7 + i / 251);
    return data;
}

int put(const std::vector<char>& data, MPI_Aint there, MPI_Win win, int target = partner()) {
    const int n = static_cast<int>(data.size());
    return MPI_Put(data.data(), n, MPI_CHAR, target, there, n, MPI_CHAR, win);
}

std::vector<char> get(std::size_t bytes, MPI_Aint there, MPI_Win win, int target = partner()) {
    std::vector<char> data(bytes, 'x');
    const int n = static_cast<int>(bytes);
    CHECK_OK(MPI_Get(data.data(), n, MPI_CHAR, target, there, n, MPI_CHAR, win));
    CHECK_OK(MPI_Win_flush(target, win));
    return data;
}

long long direct() {
    return osct::counter("network.writes") + osct::counter("network.reads");
}

/// A window with memory, of which the first kLarge bytes are attached; and where the partner's begins.
struct Attached {
    std::vector<char> memory;
    Dynamic dynamic;
    MPI_Aint there = 0;
    explicit Attached(std::size_t bytes) : memory(bytes) {
        CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), kLarge));
        there = of_the_partner(memory.data());
    }
};

// The host's own waits keep its lock from the other threads on a machine with few cores.
void await(MPI_Request request) {
    for (int done = 0; done == 0; std::this_thread::yield())
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

}  // namespace

// After the first time, nothing but the transfers themselves goes over the network.
CASE(large_transfers_need_no_message) {
    Attached attached(kLarge);
    auto& [memory, dynamic, there] = attached;
    MPI_Win_lock_all(0, dynamic.win);
    CHECK_OK(put(pattern(kLarge, 0), there, dynamic.win));
    CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
    MPI_Barrier(MPI_COMM_WORLD);
    const long long requests = osct::counter("network.requests"), before = direct();
    for (int round = 0; round < 20; ++round) {
        const std::vector<char> out = pattern(kLarge, rank() + round);
        CHECK_OK(put(out, there, dynamic.win));
        CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
        CHECK(get(kLarge, there, dynamic.win) == out);
    }
    CHECK_EQ(osct::counter("network.requests"), requests);
    CHECK_EQ(direct() - before, osct::same_node(partner()) ? 0 : 40);
    MPI_Win_unlock_all(dynamic.win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory == pattern(kLarge, partner() + 19));
    CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
}

// The same address, again and again, with another size each time: what was known of the region before is not believed.
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
            // One byte too much: refused by the call, and nothing has moved.
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

// Large and small regions side by side: one operation goes through all of them, each in its own way.
CASE(across_adjacent_regions) {
    constexpr std::size_t kSizes[] = {16, 8192, 40, 4096, 100000, 8, 65536};
    std::size_t total = 0;
    for (const std::size_t bytes : kSizes)
        total += bytes;
    std::vector<char> memory(total);
    Dynamic dynamic;
    std::size_t at = 0;
    for (const std::size_t bytes : kSizes) {
        CHECK_OK(MPI_Win_attach(dynamic.win, memory.data() + at, static_cast<MPI_Aint>(bytes)));
        at += bytes;
    }
    const MPI_Aint there = of_the_partner(memory.data());
    MPI_Win_lock_all(0, dynamic.win);
    const std::vector<char> out = pattern(total, rank());
    CHECK_OK(put(out, there, dynamic.win));
    CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
    CHECK(get(total, there, dynamic.win) == out);
    CHECK(get(9000, there + 10, dynamic.win) == std::vector<char>(out.begin() + 10, out.begin() + 9010));
    const std::vector<long> ones(total / 8, 1);
    CHECK_OK(MPI_Accumulate(ones.data(), static_cast<int>(total / 8), MPI_LONG, partner(), there,
                            static_cast<int>(total / 8), MPI_LONG, MPI_SUM, dynamic.win));
    CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
    MPI_Barrier(MPI_COMM_WORLD);
    const std::vector<char> got = pattern(total, partner());
    for (std::size_t i = 0; i < total / 8; ++i) {
        long was = 0, is = 0;
        std::memcpy(&was, &got[i * 8], 8);
        std::memcpy(&is, &memory[i * 8], 8);
        if (is != was + 1) {
            CHECK_EQ(is, was + 1);
            break;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    // A gap in the middle: all of the operation is refused before any of it moves.
    CHECK_OK(MPI_Win_detach(dynamic.win, memory.data() + 16 + 8192));
    const std::vector<char> before = memory;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_CLASS(put(out, there, dynamic.win), MPI_ERR_RMA_RANGE);
    CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory == before);
    MPI_Win_unlock_all(dynamic.win);
}

// Absolute addresses in the target's datatype, displacement MPI_BOTTOM: many regions in one operation.
CASE(absolute_addresses) {
    constexpr int kRegions = 100, kBytes = 5000;
    Dynamic dynamic;
    std::vector<std::vector<char>> memory(kRegions, std::vector<char>(kBytes));
    std::vector<MPI_Aint> mine(kRegions), theirs(kRegions);
    for (std::size_t i = 0; i < kRegions; ++i) {
        CHECK_OK(MPI_Win_attach(dynamic.win, memory[i].data(), kBytes));
        mine[i] = address(memory[i].data());
    }
    MPI_Sendrecv(mine.data(), kRegions, MPI_AINT, partner(), 0, theirs.data(), kRegions, MPI_AINT, partner(), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Datatype type;
    MPI_Type_create_hindexed_block(kRegions, kBytes, theirs.data(), MPI_CHAR, &type);
    MPI_Type_commit(&type);
    const std::vector<char> out = pattern(std::size_t{kRegions} * kBytes, rank());
    std::vector<char> in(out.size());
    const int n = static_cast<int>(out.size());
    MPI_Win_fence(0, dynamic.win);
    CHECK_OK(MPI_Put(out.data(), n, MPI_CHAR, partner(), 0, 1, type, dynamic.win));
    MPI_Win_fence(0, dynamic.win);
    CHECK_OK(MPI_Get(in.data(), n, MPI_CHAR, partner(), 0, 1, type, dynamic.win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, dynamic.win);
    CHECK(in == out);
    const std::vector<char> wanted = pattern(out.size(), partner());
    for (std::size_t i = 0; i < kRegions; ++i)
        CHECK(std::equal(memory[i].begin(), memory[i].end(), wanted.begin() + static_cast<std::ptrdiff_t>(i) * kBytes));
    MPI_Type_free(&type);
}

// Regions of which nobody knows come and go without a message, and leave nothing behind.
CASE(unknown_regions_come_and_go_for_nothing) {
    Attached attached(3 * kLarge);
    auto& [memory, dynamic, there] = attached;
    MPI_Win_lock_all(0, dynamic.win);
    CHECK_OK(put(pattern(kLarge, 1), there, dynamic.win));
    CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
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
    // Nor do those leave anything behind that somebody has known.
    for (int i = 0; i < 80; ++i) {
        if (i == 30) resident = osct::resident_kib();
        CHECK_OK(MPI_Win_attach(dynamic.win, memory.data() + 2 * kLarge, kLarge));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(put(pattern(4096, i), there + 2 * static_cast<MPI_Aint>(kLarge), dynamic.win));
        CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_detach(dynamic.win, memory.data() + 2 * kLarge));
    }
    CHECK(kFreedIsKept || osct::resident_kib() - resident < 1024);
    MPI_Win_unlock_all(dynamic.win);
}

// The holder of a region sits in a call of the host's until the region is gone; and it gets no key for another one.
CASE(detach_needs_nothing_of_who_knows_the_region) {
    Attached attached(kLarge);
    auto& [memory, dynamic, there] = attached;
    MPI_Win_lock_all(0, dynamic.win);
    for (int turn = 0; turn < 2; ++turn) {
        CHECK_OK(put(pattern(kLarge, rank()), there, dynamic.win));
        CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
        MPI_Barrier(MPI_COMM_WORLD);
        int gone = 0;
        if ((rank() < partner()) == (turn == 0)) {
            CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
            if (partner() != rank()) MPI_Send(&gone, 1, MPI_INT, partner(), 1, MPI_COMM_WORLD);
        } else if (partner() != rank()) {
            MPI_Recv(&gone, 1, MPI_INT, partner(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_CLASS(put(pattern(kLarge, rank()), there, dynamic.win), MPI_ERR_RMA_RANGE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if ((rank() < partner()) == (turn == 0)) CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), kLarge));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(dynamic.win);
}

// All processes know a region of rank 0.
CASE(everybody_knows_a_region) {
    Dynamic dynamic;
    std::vector<char> memory(kLarge * static_cast<std::size_t>(size()));
    MPI_Aint there = address(memory.data());
    MPI_Bcast(&there, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, dynamic.win);
    for (int round = 0; round < 10; ++round) {
        if (rank() == 0) CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), static_cast<MPI_Aint>(memory.size())));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(put(pattern(kLarge, rank() + round), there + rank() * static_cast<MPI_Aint>(kLarge), dynamic.win, 0));
        CHECK_OK(MPI_Win_flush(0, dynamic.win));
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) {
            for (int from = 0; from < size(); ++from) {
                const std::vector<char> wanted = pattern(kLarge, from + round);
                CHECK(std::equal(wanted.begin(), wanted.end(),
                                 memory.begin() + from * static_cast<std::ptrdiff_t>(kLarge)));
            }
            CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_CLASS(put(pattern(kLarge, 0), there, dynamic.win, 0), MPI_ERR_RMA_RANGE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(dynamic.win);
}

// Two windows have the same memory attached: what one lets go of, the other one keeps; and a window that goes with
// regions that others know takes nothing of the other one along.
CASE(two_windows_over_the_same_memory) {
    std::vector<char> memory(kLarge);
    const MPI_Aint there = of_the_partner(memory.data());
    Dynamic stays;
    CHECK_OK(MPI_Win_attach(stays.win, memory.data(), kLarge));
    for (int round = 0; round < 6; ++round) {
        Dynamic goes;
        CHECK_OK(MPI_Win_attach(goes.win, memory.data(), kLarge));
        MPI_Barrier(MPI_COMM_WORLD);
        for (const MPI_Win win : {stays.win, goes.win}) {
            MPI_Win_lock(MPI_LOCK_SHARED, partner(), 0, win);
            const std::vector<char> out = pattern(kLarge, rank() + round);
            CHECK_OK(put(out, there, win));
            CHECK_OK(MPI_Win_flush(partner(), win));
            CHECK(get(kLarge, there, win) == out);
            CHECK_OK(MPI_Win_unlock(partner(), win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (round % 2 == 0) {
            CHECK_OK(MPI_Win_detach(goes.win, memory.data()));
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Win_lock(MPI_LOCK_SHARED, partner(), 0, goes.win);
            CHECK_CLASS(put(pattern(kLarge, 5), there, goes.win), MPI_ERR_RMA_RANGE);
            CHECK_OK(MPI_Win_unlock(partner(), goes.win));
        }
    }
}

// A process replaces a region under its own exclusive lock, while a partner that knows the old one waits for the lock
// with an operation that only the new one has room for.
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
            CHECK_OK(put(pattern(8192, 77), there, dynamic.win, owner));
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
            osct::compute(0.02);  // the partner comes so far as it can
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

// Threads attach and detach for threads of the partner, all in one window.
CASE(threads_attach_and_detach) {
    constexpr int kThreads = 3;
    const int rounds = osct::full() ? 2000 : 100;
    Dynamic dynamic;
    MPI_Win_lock_all(0, dynamic.win);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {  // the owner of regions
            for (int round = 0; round < rounds; ++round) {
                std::vector<char> memory(kLarge / 2 + static_cast<std::size_t>(t) * 8);
                CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), static_cast<MPI_Aint>(memory.size())));
                const MPI_Aint here = address(memory.data());
                int written = -1;
                MPI_Request told, ended;
                MPI_Isend(&here, 1, MPI_AINT, partner(), 2 * t, MPI_COMM_WORLD, &told);
                MPI_Irecv(&written, 1, MPI_INT, partner(), 2 * t + 1, MPI_COMM_WORLD, &ended);
                await(told);
                await(ended);
                CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
                CHECK(memory == pattern(memory.size(), written));
            }
        });
        threads.emplace_back([&, t] {  // its partner
            for (int round = 0; round < rounds; ++round) {
                MPI_Aint there = 0;
                MPI_Request told, ended;
                MPI_Irecv(&there, 1, MPI_AINT, partner(), 2 * t, MPI_COMM_WORLD, &told);
                await(told);
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
    for (std::thread& thread : threads)
        thread.join();
    MPI_Win_unlock_all(dynamic.win);
}
