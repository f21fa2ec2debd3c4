// What the arena keeps of freed pieces: pages up to a bound, addresses up to another one, nothing when memory is short.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fake_system.h"
#include "shm/arena.h"
#include "shm/control.h"

namespace osc::test {
namespace {

TEST(KeptMemory, FreedPiecesAreKeptUpToTheBound) {
    Arena arena(FakeSystem().memory(), 16 * kMiB);
    ASSERT_TRUE(arena.open());
    const std::size_t before = backed(arena);
    const auto use = [&](std::size_t bytes) {
        const ArenaBlock piece = arena.allocate(bytes, 64, false);
        EXPECT_TRUE(piece);
        std::memset(piece.address, 0x5a, bytes);
        return piece;
    };
    const ArenaBlock first = use(8 * kMiB);
    EXPECT_TRUE(arena.release(first.address));
    EXPECT_EQ(arena.kept(), 8 * kMiB);
    EXPECT_EQ(arena.in_use(), 0u);
    EXPECT_EQ(arena.offset_of(first.address, 1), shm::kNoOffset);
    EXPECT_FALSE(arena.release(first.address));
    // The next allocation has the same pages, and cuts off what it needs.
    const ArenaBlock again = arena.allocate(3 * kMiB, 64, false);
    EXPECT_EQ(again.address, first.address);
    EXPECT_EQ(again.offset, first.offset);
    EXPECT_EQ(again.address[0], std::byte{0x5a});
    EXPECT_EQ(arena.kept(), 5 * kMiB);
    EXPECT_EQ(backed(arena), before + 8 * kMiB);
    const ArenaBlock rest = arena.allocate(5 * kMiB, 64, false);
    EXPECT_EQ(rest.address, first.address + 3 * kMiB);
    EXPECT_EQ(arena.at(rest.offset), rest.address);
    EXPECT_EQ(arena.kept(), 0u);
    // The oldest goes when the bound is passed; a piece beyond the bound is not kept at all.
    const ArenaBlock other = use(12 * kMiB);
    const ArenaBlock huge = use(17 * kMiB);
    EXPECT_TRUE(arena.release(again.address));
    EXPECT_TRUE(arena.release(rest.address));
    EXPECT_EQ(arena.kept(), 8 * kMiB);
    EXPECT_TRUE(arena.release(other.address));
    EXPECT_EQ(arena.kept(), 12 * kMiB);
    EXPECT_TRUE(arena.release(huge.address));
    EXPECT_EQ(arena.kept(), 12 * kMiB);
    EXPECT_EQ(backed(arena), before + 12 * kMiB);
}

// A piece beyond the bound loses its pages and stays mapped, for one of its own size.
TEST(KeptMemory, PiecesBeyondTheBoundKeepTheirAddresses) {
    Arena arena(FakeSystem().memory(), 4 * kMiB);
    ASSERT_TRUE(arena.open());
    const std::size_t before = backed(arena);
    const ArenaBlock first = arena.allocate(20 * kMiB, 64, false);
    std::memset(first.address, 0x5a, 20 * kMiB);
    EXPECT_TRUE(arena.release(first.address));
    EXPECT_EQ(backed(arena), before);
    EXPECT_EQ(arena.kept(), 0u);
    EXPECT_TRUE(is_mapped(first));
    EXPECT_EQ(arena.offset_of(first.address, 1), shm::kNoOffset);
    const ArenaBlock cleared = arena.allocate(20 * kMiB, 64, true);
    const ArenaBlock small = arena.allocate(9 * kMiB, 64, false);
    const ArenaBlock larger = arena.allocate(21 * kMiB, 64, false);
    for (const ArenaBlock& other : {cleared, small, larger})
        EXPECT_NE(other.address, first.address);
    const ArenaBlock again = arena.allocate(10 * kMiB, 64, false);
    EXPECT_EQ(again.address, first.address);
    EXPECT_EQ(again.offset, first.offset);
    EXPECT_TRUE(
        std::all_of(again.address, again.address + 10 * kMiB, [](std::byte value) { return value == std::byte{}; }));
    EXPECT_EQ(arena.offset_of(again.address + 10 * kMiB - 1, 1), again.offset + 10 * kMiB - 1);
    EXPECT_EQ(arena.offset_of(again.address, 11 * kMiB), shm::kNoOffset);
    // What the bound puts out keeps its addresses too.
    const ArenaBlock out = arena.allocate(3 * kMiB, 64, false);
    const ArenaBlock in = arena.allocate(3 * kMiB, 64, false);
    out.address[0] = in.address[0] = std::byte{1};
    EXPECT_TRUE(arena.release(out.address));
    EXPECT_TRUE(arena.release(in.address));
    EXPECT_EQ(arena.kept(), 3 * kMiB);
    EXPECT_TRUE(is_mapped(out));
    EXPECT_EQ(arena.allocate(3 * kMiB, 64, false).address, in.address);
    EXPECT_EQ(arena.allocate(3 * kMiB, 64, false).address, out.address);
}

TEST(KeptMemory, AddressesWithoutPagesAreBounded) {
    const FakeSystem system;
    system.write("/proc/sys/vm/overcommit_memory", "1\n");
    Arena arena(system.memory(), 0);
    const auto release_all = [&](std::size_t count, std::size_t bytes) {
        std::vector<ArenaBlock> pieces;
        for (std::size_t i = 0; i < count; ++i)
            pieces.push_back(arena.allocate(bytes, 64, false));
        for (const ArenaBlock& piece : pieces)
            EXPECT_TRUE(arena.release(piece.address));
        return static_cast<std::size_t>(std::count_if(pieces.begin(), pieces.end(), is_mapped));
    };
    EXPECT_EQ(release_all(5, 1024 * kMiB), 4u);
    EXPECT_EQ(release_all(100, 2 * kMiB), 64u);
}

TEST(KeptMemory, AddressesAreGivenBackWhereTheyAreScarce) {
    const FakeSystem system;
    const auto stays = [&] {
        Arena arena(system.memory(), 0);
        const ArenaBlock piece = arena.allocate(8 * kMiB, 64, false);
        EXPECT_TRUE(piece);
        EXPECT_TRUE(arena.release(piece.address));
        return is_mapped(piece);
    };
    EXPECT_TRUE(stays());
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &old), 0);
    rlimit limit = old;
    limit.rlim_cur = std::size_t{1} << 50;  // far away, and yet a limit
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
    EXPECT_FALSE(stays());
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &old), 0);
    system.write("/proc/sys/vm/overcommit_memory", "2\n");
    EXPECT_FALSE(stays());
    // Memory that is short takes the page tables too.
    system.write("/proc/sys/vm/overcommit_memory", "0\n");
    Arena arena(system.memory(), 0);
    const ArenaBlock one = arena.allocate(8 * kMiB, 64, false);
    const ArenaBlock two = arena.allocate(8 * kMiB, 64, false);
    EXPECT_TRUE(arena.release(one.address));
    system.meminfo(1024, 10, 0);
    ::usleep(120'000);
    EXPECT_TRUE(arena.release(two.address));
    EXPECT_FALSE(is_mapped(one));
    EXPECT_FALSE(is_mapped(two));
}

TEST(KeptMemory, KeptPiecesGoBackWhenMemoryIsShort) {
    const FakeSystem system;
    Arena arena(system.memory(), 64 * kMiB);
    ASSERT_TRUE(arena.open());
    const std::size_t before = backed(arena);
    const auto free_one = [&] {
        const ArenaBlock piece = arena.allocate(4 * kMiB, 64, false);
        std::memset(piece.address, 1, 4 * kMiB);
        EXPECT_TRUE(arena.release(piece.address));
    };
    free_one();
    EXPECT_EQ(arena.kept(), 4 * kMiB);
    system.meminfo(1024, 10, 0);
    ::usleep(120'000);  // the arena looks at the system's memory every 100 ms
    free_one();
    EXPECT_EQ(arena.kept(), 0u);
    EXPECT_EQ(backed(arena), before);
}

// An allocation that the system refuses gets what the kept pieces take.
TEST(KeptMemory, KeptPiecesGoBackBeforeARefusal) {
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
    Arena arena(FakeSystem().memory(), 64 * kMiB);
    ASSERT_TRUE(arena.open());
    rlimit limit = old;
    limit.rlim_cur = arena.address().pool_bytes + 64 * kMiB;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const ArenaBlock small = arena.allocate(40 * kMiB, 64, false);
    const bool kept = small && arena.release(small.address) && arena.kept() == 40 * kMiB;
    const ArenaBlock large = arena.allocate(60 * kMiB, 64, true);
    // The offsets of mappings without pages too.
    Arena keeps_none(FakeSystem().memory(), 0);
    const ArenaBlock first = keeps_none.allocate(40 * kMiB, 64, false);
    const bool mapped = first && keeps_none.release(first.address) && is_mapped(first);
    const ArenaBlock second = keeps_none.allocate(60 * kMiB, 64, true);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    EXPECT_TRUE(kept);
    EXPECT_TRUE(large);
    EXPECT_EQ(arena.kept(), 0u);
    EXPECT_TRUE(mapped);
    EXPECT_TRUE(second);
}

TEST(KeptPieces, TakesTheSmallestThatFits) {
    KeptPieces kept;
    auto* const base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
    kept.keep({base, 0, 10 * kMiB});
    kept.keep({base + 16 * kMiB, 16 * kMiB, 4 * kMiB});
    EXPECT_EQ(kept.bytes(), 14 * kMiB);
    EXPECT_FALSE(kept.take(11 * kMiB, 64, 2 * kMiB));
    EXPECT_FALSE(kept.take(kMiB, std::size_t{1} << 41, 2 * kMiB));
    const auto whole = kept.take(3 * kMiB, 64, 2 * kMiB);  // 1 MiB is too little to be kept apart
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->offset, 16 * kMiB);
    EXPECT_EQ(whole->bytes, 4 * kMiB);
    const auto part = kept.take(3 * kMiB, 64, 2 * kMiB);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->bytes, 3 * kMiB);
    EXPECT_EQ(kept.bytes(), 7 * kMiB);
    EXPECT_EQ(kept.count(), 1u);
    EXPECT_FALSE(kept.take(3 * kMiB, 64, kMiB, 6 * kMiB));
    EXPECT_FALSE(kept.take(8 * kMiB, 64, kMiB, 9 * kMiB));
    const auto uncut = kept.take(4 * kMiB, 64, ~std::size_t{0}, 7 * kMiB);
    ASSERT_TRUE(uncut);
    EXPECT_EQ(uncut->bytes, 7 * kMiB);
    kept.keep(*uncut);
    EXPECT_EQ(kept.oldest()->address, base + 3 * kMiB);
    EXPECT_FALSE(kept.oldest());
    EXPECT_EQ(kept.bytes(), 0u);
}

TEST(FreeSpans, AlignsAndJoins) {
    shm::FreeSpans free;
    free.give(100, 900);
    EXPECT_EQ(free.take(100, 256), 256u);
    EXPECT_FALSE(free.take(700, 1));
    EXPECT_EQ(free.take(100, 1), 100u);
    free.give(256, 100);
    EXPECT_FALSE(free.take(801, 1));
    EXPECT_EQ(free.take(800, 1), 200u);
    free.give(100, 100);
    free.give(200, 800);
    EXPECT_EQ(free.take(900, 1), 100u);
    EXPECT_FALSE(free.take(1, 1));
}

}  // namespace
}  // namespace osc::test
