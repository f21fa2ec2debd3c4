// When the arena takes pages: at first touch, and early where a touch could be SIGBUS; and the errors of limits.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "fake_system.h"
#include "shm/arena.h"

namespace osc::test {
namespace {

// Allocation and release take no page: the file has no more blocks than at the start.
TEST(Memory, PagesComeAtFirstTouch) {
    Arena arena(FakeSystem().memory(), 0);
    ASSERT_TRUE(arena.open());
    const std::size_t before = backed(arena);
    const ArenaBlock piece = arena.allocate(std::size_t{512} * kMiB, 64, false);
    const ArenaBlock cleared = arena.allocate(std::size_t{256} * kMiB, 64, true);
    ASSERT_TRUE(piece && cleared);
    EXPECT_EQ(backed(arena), before);
    piece.address[100 * kMiB] = std::byte{1};
    EXPECT_GT(backed(arena), before);
    EXPECT_LE(backed(arena), before + 4 * kMiB);  // one page, huge where the system is set so
    EXPECT_TRUE(arena.release(piece.address));
    EXPECT_EQ(backed(arena), before);
}

TEST(Memory, StrictCommitLimitAllocatesEarly) {
    const FakeSystem system;
    system.write("/proc/sys/vm/overcommit_memory", "2\n");
    Arena arena(system.memory(), 0);
    ASSERT_TRUE(arena.open());
    const std::size_t before = backed(arena);
    const ArenaBlock piece = arena.allocate(8 * kMiB, 64, false);
    ASSERT_TRUE(piece);
    EXPECT_EQ(backed(arena), before + 8 * kMiB);
    EXPECT_TRUE(arena.release(piece.address));
    EXPECT_EQ(backed(arena), before);
    // Only what is left now can be allocated early.
    system.meminfo(1024, 16, 0);
    EXPECT_FALSE(arena.allocate(17 * kMiB, 64, false));
    EXPECT_EQ(errno, ENOMEM);
}

TEST(Memory, ModesOfOvercommit) {
    const FakeSystem system;
    SystemMemory heuristic = system.memory();
    EXPECT_FALSE(heuristic.allocates_early());
    EXPECT_FALSE(heuristic.refuses(1024 * kMiB));
    EXPECT_TRUE(heuristic.refuses(1025 * kMiB));
    system.meminfo(2048, 2048, 1024);  // memory and swap were added since
    EXPECT_FALSE(heuristic.refuses(3072 * kMiB));
    EXPECT_TRUE(heuristic.refuses(3073 * kMiB));
    system.write("/proc/sys/vm/overcommit_memory", "1\n");
    SystemMemory always = system.memory();
    EXPECT_FALSE(always.allocates_early());
    EXPECT_FALSE(always.refuses(std::uint64_t{1} << 50));
    system.write("/proc/sys/vm/overcommit_memory", "2\n");
    EXPECT_TRUE(system.memory().allocates_early());
}

// A fork copies what is available now, and the node's processes may all fork.
TEST(Memory, CopiesOfAllProcesses) {
    const FakeSystem system;
    system.meminfo(1024, 1024, 1024);
    const SystemMemory memory = system.memory();
    EXPECT_TRUE(memory.has_for_each(1, 960 * kMiB));
    EXPECT_FALSE(memory.has_for_each(1, 961 * kMiB));
    EXPECT_TRUE(memory.has_for_each(4, 240 * kMiB));
    EXPECT_FALSE(memory.has_for_each(4, 241 * kMiB));
    EXPECT_FALSE(memory.has_for_each(std::uint64_t{1} << 40, std::uint64_t{1} << 40));
    system.meminfo(1024, 100, 1024);
    EXPECT_TRUE(memory.has_for_each(1, 36 * kMiB));
    EXPECT_FALSE(memory.has_for_each(1, 37 * kMiB));
    system.meminfo(1024, 10, 1024);
    EXPECT_FALSE(memory.has_for_each(1, 1));
}

TEST(Memory, LimitsOfControlGroups) {
    const FakeSystem unified;
    unified.write("/proc/thread-self/cgroup", "0::/job/step\n");
    unified.write("/sys/fs/cgroup/job/step/memory.max", "max\n");
    unified.write("/sys/fs/cgroup/job/memory.max", std::to_string(512 * kMiB) + "\n");
    EXPECT_FALSE(unified.memory().refuses(512 * kMiB));
    EXPECT_TRUE(unified.memory().refuses(513 * kMiB));
    const FakeSystem first;
    first.write("/proc/thread-self/cgroup", "5:cpu:/job\n4:memory:/job\n0::/\n");
    first.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    first.write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(256 * kMiB) + "\n");
    EXPECT_FALSE(first.memory().refuses(256 * kMiB));
    EXPECT_TRUE(first.memory().refuses(257 * kMiB));
    EXPECT_FALSE(first.memory().is_short());
    // Files' pages that were not used lately do not count.
    first.write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(250 * kMiB) + "\n");
    EXPECT_TRUE(first.memory().is_short());
    first.write("/sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file " + std::to_string(50 * kMiB) + "\n");
    EXPECT_FALSE(first.memory().is_short());
}

// A limit of the address space makes the pool small, and larger pieces have their own mappings all the same. Without
// room for the smallest pool the arena does not open.
TEST(Memory, AddressSpaceLimit) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer reserves more addresses than any limit leaves";
#endif
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &old), 0);
    const auto limit_to = [&](std::size_t bytes) {
        rlimit limit = old;
        limit.rlim_cur = bytes;
        ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
    };
    const auto pool_under = [&](std::size_t bytes) {
        Arena arena(FakeSystem().memory(), 0);
        limit_to(bytes);
        const bool opened = arena.open();
        const int error = errno;
        const ArenaBlock piece = opened ? arena.allocate(20 * kMiB, 64, false) : ArenaBlock{};
        EXPECT_EQ(opened, static_cast<bool>(piece));
        EXPECT_EQ(::setrlimit(RLIMIT_AS, &old), 0);
        EXPECT_TRUE(opened || error == ENOMEM);
        return opened ? arena.address().pool_bytes : 0;
    };
    const std::size_t used = pages * 4096;
    EXPECT_EQ(pool_under(used + 2 * kMiB), 0U);
    EXPECT_EQ(pool_under(used + 256 * kMiB), std::max((used + 256 * kMiB) / 128 / 4096 * 4096, 4 * kMiB));
    EXPECT_EQ(pool_under(std::size_t{1} << 46), std::size_t{1024} * kMiB);
}

// A file-size limit is an error at allocation, without SIGXFSZ, and a loop of allocations stays below it.
TEST(Memory, FileSizeLimit) {
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
    Arena arena(FakeSystem().memory(), 0);
    ASSERT_TRUE(arena.open());
    rlimit limit = old;
    limit.rlim_cur = arena.address().pool_bytes + 64 * kMiB;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    errno = 0;
    const ArenaBlock refused = arena.allocate(65 * kMiB, 64, true);
    const int error = errno;
    bool all = true;
    for (int i = 0; i < 10; ++i) {
        const ArenaBlock piece = arena.allocate(40 * kMiB, 64, i % 2 == 0);
        all = all && piece;
        if (piece) arena.release(piece.address);
    }
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    EXPECT_FALSE(refused);
    EXPECT_EQ(error, EFBIG);
    EXPECT_TRUE(all);
}

// A fresh piece has the address that the kernel chooses, unless the alignment requires another one. No part of a
// larger reservation stays mapped.
TEST(Memory, FreshPiecesHaveTheirAlignment) {
    const FakeSystem system;
    system.write("/proc/sys/vm/overcommit_memory", "2\n");  // every piece is fresh: no mapping outlives its piece
    Arena arena(system.memory(), 0);
    ASSERT_TRUE(arena.open());
    const auto mappings = [] {
        std::ifstream maps("/proc/self/maps");
        return std::count_if(std::istreambuf_iterator<char>(maps), {}, [](char c) { return c == '\n'; });
    };
    const ArenaBlock warm = arena.allocate(3 * kMiB, 64, false);
    EXPECT_TRUE(arena.release(warm.address));
    const auto before = mappings();
    std::vector<ArenaBlock> pieces;
    for (std::size_t alignment = 64; alignment <= 64 * kMiB; alignment *= 4) {
        const ArenaBlock piece = arena.allocate(3 * kMiB, alignment, false);
        ASSERT_TRUE(piece);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.address) % alignment, 0u) << alignment;
        EXPECT_EQ(arena.at(piece.offset), piece.address);
        std::memset(piece.address, static_cast<int>(pieces.size() + 1), 3 * kMiB);
        pieces.push_back(piece);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto value = static_cast<std::byte>(i + 1);
        EXPECT_TRUE(
            std::all_of(pieces[i].address, pieces[i].address + 3 * kMiB, [&](std::byte b) { return b == value; }));
    }
    for (const ArenaBlock& piece : pieces)
        EXPECT_TRUE(arena.release(piece.address));
#ifndef __SANITIZE_ADDRESS__  // which maps memory of its own meanwhile
    EXPECT_EQ(mappings(), before);
#else
    static_cast<void>(before);
#endif
}

// Windows' memory reads as zero whatever was freed before.
TEST(Memory, ClearedPiecesAreNewOnes) {
    Arena arena(FakeSystem().memory(), 64 * kMiB);
    for (int round = 0; round < 3; ++round) {
        const ArenaBlock dirty = arena.allocate(4 * kMiB, 64, false);
        std::memset(dirty.address, 0xff, 4 * kMiB);
        const ArenaBlock cleared = arena.allocate(4 * kMiB, 64, true);
        EXPECT_TRUE(std::all_of(cleared.address, cleared.address + 4 * kMiB,
                                [](std::byte value) { return value == std::byte{}; }));
        std::memset(cleared.address, 0xff, 4 * kMiB);
        EXPECT_TRUE(arena.release(dirty.address));
        EXPECT_TRUE(arena.release(cleared.address));
        EXPECT_EQ(arena.kept(), 4 * kMiB);
    }
}

}  // namespace
}  // namespace osc::test
