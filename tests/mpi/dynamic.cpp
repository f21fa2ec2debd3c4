// Dynamic windows: regions that come and go without collectives while peers work on others, stale and overlapping
// regions, absolute addresses, and regions in the middle of MPI_Alloc_mem memory.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "dynamic_window.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach", "MPI_Put", "MPI_Get",
             "MPI_Accumulate")

using osct::address;
using osct::address_at;
using osct::Dynamic;

namespace {

// Memory of one of the two kinds: reached by loads and stores, or not.
class Block {
  public:
    Block(bool arena, std::size_t bytes) : arena_(arena) {
        if (arena_)
            MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &base_);
        else
            base_ = std::malloc(bytes);
        std::fill_n(static_cast<char*>(base_), bytes, char{0});
    }
    ~Block() {
        if (arena_)
            MPI_Free_mem(base_);
        else
            std::free(base_);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    template <class T>
    T* as() const {
        return static_cast<T*>(base_);
    }

  private:
    bool arena_;
    void* base_ = nullptr;
};

}  // namespace

// Every rank attaches and detaches hundreds of regions while its neighbour adds to the one region that stays.
CASE(regions_attach_and_detach_while_peers_work) {
    for (const bool arena : {false, true}) {
        Dynamic dynamic;
        const MPI_Win win = dynamic.win;
        constexpr std::size_t kRegions = 300;
        const Block counter(arena, 64);
        CHECK_OK(MPI_Win_attach(win, counter.as<void>(), 64));
        std::vector<std::unique_ptr<Block>> blocks;
        const int target = (rank() + 1) % size();
        const MPI_Aint there = address_at(target, counter.as<void>());
        const long one = 1;
        MPI_Win_lock_all(0, win);
        for (std::size_t round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < kRegions; ++i) {
                blocks.push_back(std::make_unique<Block>((i + round) % 2 == 0, 32 + i));
                CHECK_OK(MPI_Win_attach(win, blocks.back()->as<void>(), static_cast<MPI_Aint>(32 + i)));
                CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, target, there, 1, MPI_LONG, MPI_SUM, win));
                CHECK_OK(MPI_Win_flush(target, win));  // a get has no order with it
                long back = -1;
                CHECK_OK(MPI_Get(&back, 1, MPI_LONG, target, there, 1, MPI_LONG, win));
                MPI_Win_flush(target, win);
                CHECK_EQ(back, static_cast<long>(round * kRegions + i + 1));
            }
            for (std::size_t i = 0; i < kRegions; ++i) {
                const std::size_t at = i * 7 % kRegions;
                CHECK_OK(MPI_Win_detach(win, blocks[at]->as<void>()));
                blocks[at].reset();
            }
            blocks.clear();
        }
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(*counter.as<long>(), static_cast<long>(3 * kRegions));
        CHECK_OK(MPI_Win_detach(win, counter.as<void>()));
    }
}

// Hundreds of regions at once, each written by another rank and read back.
CASE(hundreds_at_once) {
    Dynamic dynamic;
    constexpr std::size_t kRegions = 500;
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<MPI_Aint> mine(kRegions), theirs(kRegions);
    for (std::size_t i = 0; i < kRegions; ++i) {
        blocks.push_back(std::make_unique<Block>(i % 3 == 0, 24));
        // Every second region starts in the middle of its block.
        char* const start = blocks[i]->as<char>() + (i % 2) * 8;
        CHECK_OK(MPI_Win_attach(dynamic.win, start, 16));
        mine[i] = address(start);
    }
    MPI_Sendrecv(mine.data(), kRegions, MPI_AINT, left(), 0, theirs.data(), kRegions, MPI_AINT, right(), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::vector<double> values;
    for (std::size_t i = 0; i < kRegions; ++i) {
        values.push_back(rank() + static_cast<double>(i));
        values.push_back(-static_cast<double>(i));
    }
    MPI_Win_fence(0, dynamic.win);
    for (std::size_t i = 0; i < kRegions; ++i) {
        CHECK_OK(MPI_Put(&values[2 * i], 2, MPI_DOUBLE, right(), theirs[i], 2, MPI_DOUBLE, dynamic.win));
    }
    MPI_Win_fence(0, dynamic.win);
    for (std::size_t i = 0; i < kRegions; ++i) {
        const double* const here = blocks[i]->as<double>() + i % 2;
        CHECK_EQ(here[0], left() + static_cast<double>(i));
        CHECK_EQ(here[1], -static_cast<double>(i));
    }
    // All regions in one operation: absolute addresses in the target's datatype, displacement MPI_BOTTOM.
    MPI_Datatype type;
    CHECK_OK(MPI_Type_create_hindexed_block(kRegions, 2, theirs.data(), MPI_DOUBLE, &type));
    MPI_Type_commit(&type);
    std::vector<double> all(2 * kRegions);
    CHECK_OK(MPI_Get(all.data(), static_cast<int>(all.size()), MPI_DOUBLE, right(), 0, 1, type, dynamic.win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, dynamic.win);
    for (std::size_t i = 0; i < kRegions; ++i) {
        CHECK_EQ(all[2 * i], rank() + static_cast<double>(i));
        CHECK_EQ(all[2 * i + 1], -static_cast<double>(i));
    }
    MPI_Type_free(&type);
    for (std::size_t i = 0; i < kRegions; ++i)
        CHECK_OK(MPI_Win_detach(dynamic.win, blocks[i]->as<char>() + (i % 2) * 8));
}

CASE(stale_and_foreign_addresses_are_refused) {
    HOST_CANNOT("the host does not check");
    for (const bool arena : {false, true}) {
        Dynamic dynamic;
        const MPI_Win win = dynamic.win;
        const Block block(arena, 256);
        CHECK_OK(MPI_Win_attach(win, block.as<void>(), 128));
        const int target = (rank() + 1) % size();
        const MPI_Aint there = address_at(target, block.as<void>());
        long value = 5, result = 0;
        MPI_Win_lock_all(0, win);
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target, there + 120, 1, MPI_LONG, win));
        CHECK_CLASS(MPI_Put(&value, 1, MPI_LONG, target, there + 124, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Put(&value, 1, MPI_LONG, target, there + 128, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Get(&value, 1, MPI_LONG, target, there - 8, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Fetch_and_op(&value, &result, MPI_LONG, target, 0, MPI_SUM, win), MPI_ERR_RMA_RANGE);
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(block.as<long>()[15], 5L);
        CHECK_EQ(block.as<long>()[16], 0L);
        CHECK_OK(MPI_Win_detach(win, block.as<void>()));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, win);
        CHECK_CLASS(MPI_Put(&value, 1, MPI_LONG, target, there, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_LONG, target, there, 1, MPI_LONG, MPI_SUM, win), MPI_ERR_RMA_RANGE);
        CHECK_CLASS(MPI_Compare_and_swap(&value, &value, &result, MPI_LONG, target, there, win), MPI_ERR_RMA_RANGE);
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(block.as<long>()[0], 0L);
    }
}

CASE(overlaps_and_unknown_regions) {
    HOST_CANNOT("the host does not check");
    Dynamic dynamic;
    const MPI_Win win = dynamic.win;
    std::vector<char> memory(1024);
    CHECK_OK(MPI_Win_attach(win, memory.data() + 100, 100));
    CHECK_CLASS(MPI_Win_attach(win, memory.data() + 100, 100), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, memory.data() + 199, 10), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, memory.data() + 90, 11), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, memory.data(), 1000), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, memory.data() + 120, 1), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, memory.data(), -1), MPI_ERR_SIZE);
    // Neighbours do not overlap.
    CHECK_OK(MPI_Win_attach(win, memory.data() + 200, 10));
    CHECK_OK(MPI_Win_attach(win, memory.data() + 90, 10));
    CHECK(MPI_Win_detach(win, memory.data() + 101) != MPI_SUCCESS);
    CHECK_OK(MPI_Win_detach(win, memory.data() + 100));
    CHECK(MPI_Win_detach(win, memory.data() + 100) != MPI_SUCCESS);
    CHECK_OK(MPI_Win_attach(win, memory.data() + 150, 50));
    // Attached regions do not have to be detached before the window goes.
}

// An element lies in two regions: the first has 12 bytes.
CASE(element_across_adjacent_regions) {
    HOST_CANNOT("it updates the element");
    Dynamic dynamic;
    const Block block(false, 64);
    CHECK_OK(MPI_Win_attach(dynamic.win, block.as<char>(), 12));
    CHECK_OK(MPI_Win_attach(dynamic.win, block.as<char>() + 12, 20));
    const int target = (rank() + 1) % size();
    const MPI_Aint there = address_at(target, block.as<void>());
    const long values[] = {1, 1};
    long result = 5;
    MPI_Win_lock_all(0, dynamic.win);
    const auto flushed = [&](int error) {
        const int late = MPI_Win_flush(target, dynamic.win);
        return error != MPI_SUCCESS ? error : late;
    };
    // The element before it is not updated either.
    CHECK_CLASS(flushed(MPI_Accumulate(values, 2, MPI_LONG, target, there, 2, MPI_LONG, MPI_SUM, dynamic.win)),
                MPI_ERR_RMA_RANGE);
    CHECK_CLASS(flushed(MPI_Fetch_and_op(values, &result, MPI_LONG, target, there + 8, MPI_SUM, dynamic.win)),
                MPI_ERR_RMA_RANGE);
    CHECK_EQ(result, 5L);
    MPI_Win_unlock_all(dynamic.win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_ALL(block.as<long>(), 4, [&](std::size_t) { return 0L; });
}

// The window spans adjacent regions: one operation may run from one into the next.
CASE(operation_across_adjacent_regions) {
    HOST_CANNOT("one region per operation is all the host knows");
    Dynamic dynamic;
    const Block block(false, 64);
    for (int part = 0; part < 4; ++part)
        CHECK_OK(MPI_Win_attach(dynamic.win, block.as<char>() + part * 16, 16));
    const int target = (rank() + 1) % size();
    const MPI_Aint there = address_at(target, block.as<void>());
    long values[8];
    for (int i = 0; i < 8; ++i)
        values[i] = rank() * 10 + i;
    MPI_Win_fence(0, dynamic.win);
    CHECK_OK(MPI_Put(values, 8, MPI_LONG, target, there, 8, MPI_LONG, dynamic.win));
    MPI_Win_fence(0, dynamic.win);
    CHECK_OK(MPI_Accumulate(values, 8, MPI_LONG, target, there, 8, MPI_LONG, MPI_SUM, dynamic.win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, dynamic.win);
    const int left = (rank() + size() - 1) % size();
    CHECK_ALL(block.as<long>(), 8, [&](std::size_t i) { return 2 * (left * 10 + static_cast<long>(i)); });
}
