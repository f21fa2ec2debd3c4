// When the arena takes pages and when it gives them back: at first touch, early where a touch could be SIGBUS, kept up
// to a bound, returned when memory is short; and the errors of limits.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "transport/shm/arena.h"
#include "transport/shm/control.h"

namespace osc::test {
namespace {

using shm::Arena;
using shm::KeptPieces;
using shm::Mapping;
using shm::Piece;
using shm::SystemMemory;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A folder with /proc and /sys of the test's own.
class FakeSystem {
  public:
    FakeSystem() {
        std::string name = (std::filesystem::temp_directory_path() / "osc_memory_XXXXXX").string();
        root_ = ::mkdtemp(name.data());
        write("/proc/sys/vm/overcommit_memory", "0\n");
        meminfo(1024, 1024, 0);
    }
    ~FakeSystem() { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    void meminfo(std::size_t total_mib, std::size_t available_mib, std::size_t swap_mib) const {
        write("/proc/meminfo", "MemTotal: " + std::to_string(total_mib * 1024) +
                                   " kB\nMemFree: 1 kB\nMemAvailable: " + std::to_string(available_mib * 1024) +
                                   " kB\nSwapTotal: " + std::to_string(swap_mib * 1024) + " kB\n");
    }
    SystemMemory memory() const { return SystemMemory(root_); }

  private:
    std::string root_;
};

// Bytes that the arena's file has pages for.
std::size_t backed(const Arena& arena) {
    struct stat file = {};
    EXPECT_EQ(::fstat(arena.address().fd, &file), 0);
    return static_cast<std::size_t>(file.st_blocks) * 512;
}

// Allocates and gives back without a page: the blocks of the file are what the arena has from the start.
TEST(Memory, PagesComeAtFirstTouch) {
    Arena arena(FakeSystem().memory(), 0);
    ASSERT_TRUE(arena.open());
    const std::size_t before = backed(arena);
    const Piece piece = arena.allocate(std::size_t{512} * kMiB, 64, false);
    const Piece cleared = arena.allocate(std::size_t{256} * kMiB, 64, true);
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
    const Piece piece = arena.allocate(8 * kMiB, 64, false);
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

TEST(Memory, LimitsOfControlGroups) {
    const FakeSystem unified;
    unified.write("/proc/self/cgroup", "0::/job/step\n");
    unified.write("/sys/fs/cgroup/job/step/memory.max", "max\n");
    unified.write("/sys/fs/cgroup/job/memory.max", std::to_string(512 * kMiB) + "\n");
    EXPECT_FALSE(unified.memory().refuses(512 * kMiB));
    EXPECT_TRUE(unified.memory().refuses(513 * kMiB));
    const FakeSystem first;
    first.write("/proc/self/cgroup", "5:cpu:/job\n4:memory:/job\n0::/\n");
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
    const Piece refused = arena.allocate(65 * kMiB, 64, true);
    const int error = errno;
    bool all = true;
    for (int i = 0; i < 10; ++i) {
        const Piece piece = arena.allocate(40 * kMiB, 64, i % 2 == 0);
        all = all && piece;
        if (piece) arena.release(piece.address);
    }
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    EXPECT_FALSE(refused);
    EXPECT_EQ(error, EFBIG);
    EXPECT_TRUE(all);
}

TEST(Memory, FreedPiecesAreKeptUpToTheBound) {
    Arena arena(FakeSystem().memory(), 16 * kMiB);
    ASSERT_TRUE(arena.open());
    const std::size_t before = backed(arena);
    const auto use = [&](std::size_t bytes) {
        const Piece piece = arena.allocate(bytes, 64, false);
        EXPECT_TRUE(piece);
        std::memset(piece.address, 0x5a, bytes);
        return piece;
    };
    const Piece first = use(8 * kMiB);
    EXPECT_TRUE(arena.release(first.address));
    EXPECT_EQ(arena.kept(), 8 * kMiB);
    EXPECT_EQ(arena.in_use(), 0u);
    EXPECT_EQ(arena.offset_of(first.address, 1), shm::kNoOffset);
    EXPECT_FALSE(arena.release(first.address));
    // The next allocation has the same pages, and cuts off what it needs.
    const Piece again = arena.allocate(3 * kMiB, 64, false);
    EXPECT_EQ(again.address, first.address);
    EXPECT_EQ(again.offset, first.offset);
    EXPECT_EQ(again.address[0], std::byte{0x5a});
    EXPECT_EQ(arena.kept(), 5 * kMiB);
    EXPECT_EQ(backed(arena), before + 8 * kMiB);
    const Piece rest = arena.allocate(5 * kMiB, 64, false);
    EXPECT_EQ(rest.address, first.address + 3 * kMiB);
    EXPECT_EQ(arena.at(rest.offset), rest.address);
    EXPECT_EQ(arena.kept(), 0u);
    // The oldest goes when the bound is passed; a piece beyond the bound is not kept at all.
    const Piece other = use(12 * kMiB);
    const Piece huge = use(17 * kMiB);
    EXPECT_TRUE(arena.release(again.address));
    EXPECT_TRUE(arena.release(rest.address));
    EXPECT_EQ(arena.kept(), 8 * kMiB);
    EXPECT_TRUE(arena.release(other.address));
    EXPECT_EQ(arena.kept(), 12 * kMiB);
    EXPECT_TRUE(arena.release(huge.address));
    EXPECT_EQ(arena.kept(), 12 * kMiB);
    EXPECT_EQ(backed(arena), before + 12 * kMiB);
}

// A fresh piece takes the address that the kernel chooses, unless the alignment asks for another one. Nothing of a
// larger reservation stays mapped.
TEST(Memory, FreshPiecesHaveTheirAlignment) {
    Arena arena(FakeSystem().memory(), 0);
    ASSERT_TRUE(arena.open());
    const auto mappings = [] {
        std::ifstream maps("/proc/self/maps");
        return std::count_if(std::istreambuf_iterator<char>(maps), {}, [](char c) { return c == '\n'; });
    };
    const Piece warm = arena.allocate(3 * kMiB, 64, false);
    EXPECT_TRUE(arena.release(warm.address));
    const auto before = mappings();
    std::vector<Piece> pieces;
    for (std::size_t alignment = 64; alignment <= 64 * kMiB; alignment *= 4) {
        const Piece piece = arena.allocate(3 * kMiB, alignment, false);
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
    for (const Piece& piece : pieces)
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
        const Piece dirty = arena.allocate(4 * kMiB, 64, false);
        std::memset(dirty.address, 0xff, 4 * kMiB);
        const Piece cleared = arena.allocate(4 * kMiB, 64, true);
        EXPECT_TRUE(std::all_of(cleared.address, cleared.address + 4 * kMiB,
                                [](std::byte value) { return value == std::byte{}; }));
        std::memset(cleared.address, 0xff, 4 * kMiB);
        EXPECT_TRUE(arena.release(dirty.address));
        EXPECT_TRUE(arena.release(cleared.address));
        EXPECT_EQ(arena.kept(), 4 * kMiB);
    }
}

TEST(Memory, KeptPiecesGoBackWhenMemoryIsShort) {
    const FakeSystem system;
    Arena arena(system.memory(), 64 * kMiB);
    ASSERT_TRUE(arena.open());
    const std::size_t before = backed(arena);
    const auto free_one = [&] {
        const Piece piece = arena.allocate(4 * kMiB, 64, false);
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
TEST(Memory, KeptPiecesGoBackBeforeARefusal) {
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
    Arena arena(FakeSystem().memory(), 64 * kMiB);
    ASSERT_TRUE(arena.open());
    rlimit limit = old;
    limit.rlim_cur = arena.address().pool_bytes + 64 * kMiB;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const Piece small = arena.allocate(40 * kMiB, 64, false);
    const bool kept = small && arena.release(small.address) && arena.kept() == 40 * kMiB;
    const Piece large = arena.allocate(60 * kMiB, 64, true);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    EXPECT_TRUE(kept);
    EXPECT_TRUE(large);
    EXPECT_EQ(arena.kept(), 0u);
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
