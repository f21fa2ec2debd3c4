// Transfers to regions of dynamic windows that the origin has cached: they use direct accesses without a look-up. The
// partners are on different nodes if there are several; on one node the results must be the same.
#include <algorithm>
#include <cstring>
#include <vector>

#include "partner_regions.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach", "MPI_Put", "MPI_Get",
             "MPI_Accumulate", "MPI_Win_flush")

using namespace osct;

namespace {

long long direct_accesses() {
    return osct::counter("network.writes") + osct::counter("network.reads");
}

}  // namespace

// After the first transfer only data goes over the network.
CASE(large_transfers_need_no_message) {
    Attached attached(kLarge);
    auto& [memory, dynamic, there] = attached;
    MPI_Win_lock_all(0, dynamic.win);
    CHECK_OK(put_and_flush(pattern(kLarge, 0), there, dynamic.win));
    MPI_Barrier(MPI_COMM_WORLD);
    const long long requests = osct::counter("network.requests"), before = direct_accesses();
    for (int round = 0; round < 20; ++round) {
        const std::vector<char> out = pattern(kLarge, rank() + round);
        CHECK_OK(put(out, there, dynamic.win));
        CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
        CHECK(get(kLarge, there, dynamic.win) == out);
    }
    CHECK_EQ(osct::counter("network.requests"), requests);
    CHECK_EQ(direct_accesses() - before, osct::same_node(partner()) ? 0 : 40);
    MPI_Win_unlock_all(dynamic.win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory == pattern(kLarge, partner() + 19));
    CHECK_OK(MPI_Win_detach(dynamic.win, memory.data()));
}

// One operation covers large and small adjacent regions, which use direct accesses and messages.
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
    // With a gap in the middle the whole operation is refused before a byte moves.
    CHECK_OK(MPI_Win_detach(dynamic.win, memory.data() + 16 + 8192));
    const std::vector<char> before = memory;
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_CLASS(put(out, there, dynamic.win), MPI_ERR_RMA_RANGE);
    CHECK_OK(MPI_Win_flush(partner(), dynamic.win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory == before);
    MPI_Win_unlock_all(dynamic.win);
}

// Absolute addresses in the target's datatype and displacement MPI_BOTTOM: one operation covers many regions.
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

// All processes cache a region of rank 0.
CASE(all_processes_cache_a_region) {
    Dynamic dynamic;
    std::vector<char> memory(kLarge * static_cast<std::size_t>(size()));
    MPI_Aint there = address(memory.data());
    MPI_Bcast(&there, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, dynamic.win);
    for (int round = 0; round < 10; ++round) {
        if (rank() == 0) CHECK_OK(MPI_Win_attach(dynamic.win, memory.data(), static_cast<MPI_Aint>(memory.size())));
        MPI_Barrier(MPI_COMM_WORLD);
        const MPI_Aint mine = there + rank() * static_cast<MPI_Aint>(kLarge);
        CHECK_OK(put_and_flush(pattern(kLarge, rank() + round), mine, dynamic.win, 0));
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

// Two windows attach the same memory. A detach from one leaves the other's region valid, and so does the free of a
// window whose regions other processes have cached.
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
