// The arena: allocation, coalescing, large pieces, alignment, offsets, and a peer's view of it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "base/process_state.h"
#include "shm/arena.h"
#include "shm/control.h"

namespace osc::test {
namespace {

using shm::Arena;
using shm::ArenaBlock;

bool aligned(const void* address, std::size_t to) {
    return reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

TEST(Arena, PiecesAreAlignedClearedAndFoundByOffset) {
    Arena& arena = Arena::mine();
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{1} << 20,
                                    (std::size_t{2} << 20) - 1, std::size_t{3} << 20}) {
        for (const std::size_t alignment : {std::size_t{1}, std::size_t{256}, std::size_t{4096}, std::size_t{65536}}) {
            const ArenaBlock piece = arena.allocate(bytes, alignment, true);
            ASSERT_TRUE(piece) << bytes << " bytes at " << alignment;
            EXPECT_TRUE(aligned(piece.address, std::max<std::size_t>(alignment, 64)));
            EXPECT_TRUE(
                std::all_of(piece.address, piece.address + bytes, [](std::byte b) { return b == std::byte{}; }));
            EXPECT_EQ(arena.offset_of(piece.address, bytes), piece.offset);
            EXPECT_EQ(arena.at(piece.offset), piece.address);
            std::memset(piece.address, 0xab, bytes);
            ASSERT_TRUE(arena.release(piece.address));
            EXPECT_FALSE(arena.release(piece.address));
        }
    }
    EXPECT_EQ(arena.in_use(), 0u);
}

TEST(Arena, OffsetsBelongToOnePieceOnly) {
    Arena& arena = Arena::mine();
    const ArenaBlock piece = arena.allocate(1024, 64, false);
    int local = 0;
    EXPECT_EQ(arena.offset_of(&local, 4), shm::kNoOffset);
    EXPECT_EQ(arena.offset_of(piece.address + 1000, 24), piece.offset + 1000);
    EXPECT_EQ(arena.offset_of(piece.address + 1000, 25), shm::kNoOffset);
    EXPECT_EQ(arena.offset_of(piece.address, ~std::size_t{0}), shm::kNoOffset);
    EXPECT_FALSE(arena.release(piece.address + 64));
    ASSERT_TRUE(arena.release(piece.address));
    EXPECT_EQ(arena.offset_of(piece.address, 4), shm::kNoOffset);
}

// Neighbours join whichever is freed first: afterwards one piece of all their bytes fits in their place.
TEST(Arena, FreePiecesJoin) {
    Arena& arena = Arena::mine();
    std::vector<int> order{0, 1, 2, 3};
    do {
        std::vector<ArenaBlock> pieces;
        for (int i = 0; i < 4; ++i)
            pieces.push_back(arena.allocate(4096, 64, false));
        const ArenaBlock fence = arena.allocate(64, 64, false);
        const std::uint64_t first = pieces[0].offset;
        ASSERT_EQ(pieces[3].offset, first + 3 * 4096);
        for (const int i : order)
            ASSERT_TRUE(arena.release(pieces[static_cast<std::size_t>(i)].address));
        const ArenaBlock whole = arena.allocate(4 * 4096, 64, false);
        EXPECT_EQ(whole.offset, first);
        arena.release(whole.address);
        arena.release(fence.address);
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(arena.in_use(), 0u);
}

TEST(Arena, RandomLoadFromSeveralThreadsNeverOverlaps) {
    Arena& arena = Arena::mine();
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&arena, t] {
            std::minstd_rand random(t + 1);
            std::vector<ArenaBlock> mine;
            for (int i = 0; i < 1500; ++i) {
                if (mine.size() < 20 && random() % 2 == 0) {
                    const std::size_t bytes = random() % 100 == 0 ? std::size_t{3} << 20 : random() % 20000 + 1;
                    const ArenaBlock piece = arena.allocate(bytes, std::size_t{1} << (random() % 13), false);
                    ASSERT_TRUE(piece);
                    std::memset(piece.address, static_cast<int>(t), bytes);
                    mine.push_back({piece.address, piece.offset, bytes});
                } else if (!mine.empty()) {
                    const ArenaBlock piece = mine.back();
                    mine.pop_back();
                    ASSERT_TRUE(std::all_of(piece.address, piece.address + piece.bytes,
                                            [&](std::byte b) { return b == static_cast<std::byte>(t); }));
                    ASSERT_TRUE(arena.release(piece.address));
                }
            }
            for (const ArenaBlock& piece : mine)
                arena.release(piece.address);
        });
    }
    threads.clear();
    EXPECT_EQ(arena.in_use(), 0u);
}

TEST(Arena, RefusesSizesThatNoSystemHas) {
    EXPECT_FALSE(Arena::mine().allocate(~std::size_t{0}, 64, false));
    EXPECT_EQ(Arena::mine().in_use(), 0u);
}

// This process acts as the peer: its own descriptor is opened through /proc like a peer's.
TEST(PeerArena, SeesThePoolAndLargePieces) {
    Arena& arena = Arena::mine();
    shm::PeerArena peer(arena.address());
    for (const std::size_t bytes : {std::size_t{512}, std::size_t{5} << 20}) {
        const ArenaBlock piece = arena.allocate(bytes, 64, true);
        // Also a part that starts between two pages.
        for (const std::size_t skip : {std::size_t{0}, std::size_t{192}}) {
            std::byte* seen = peer.map(piece.offset + skip, bytes - skip);
            ASSERT_NE(seen, nullptr);
            EXPECT_NE(seen, piece.address + skip);
            piece.address[skip + 7] = std::byte{42};
            EXPECT_EQ(seen[7], std::byte{42});
            seen[bytes - skip - 1] = std::byte{9};
            EXPECT_EQ(piece.address[bytes - 1], std::byte{9});
            peer.unmap(piece.offset + skip, seen, bytes - skip);
        }
        arena.release(piece.address);
    }
}

TEST(PeerArena, RefusesAWrongTokenAndAClosedDescriptor) {
    ASSERT_TRUE(Arena::mine().open());
    shm::ArenaAddress address = Arena::mine().address();
    address.token ^= 1;
    shm::PeerArena wrong(address);
    EXPECT_EQ(wrong.map(0, 64), nullptr);
    address = Arena::mine().address();
    address.fd = 1000000;
    shm::PeerArena closed(address);
    EXPECT_EQ(closed.map(0, 64), nullptr);
}

// The number may have been given to another file since the pool was mapped: large pieces are checked as well.
TEST(PeerArena, ChecksTheTokenForLargePiecesToo) {
    ASSERT_TRUE(Arena::mine().open());
    shm::ArenaAddress address = Arena::mine().address();
    const int copy = ::dup(address.fd);
    address.fd = copy;
    shm::PeerArena peer(address);
    ASSERT_NE(peer.map(0, 64), nullptr);
    const int other = ::memfd_create("other", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(other, off_t{1} << 41), 0);
    ASSERT_EQ(::dup2(other, copy), copy);
    EXPECT_EQ(peer.map(std::uint64_t{1} << 40, 4096), nullptr);
    ::close(other);
    ::close(copy);
}

TEST(Process, StartTimeTellsLiveProcesses) {
    EXPECT_NE(base::process_start_time(::getpid()), 0u);
    const std::uint64_t mine = base::process_start_time(::getpid());
    EXPECT_EQ(base::process_start_time(::getpid()), mine);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(base::process_start_time(::getppid()) == mine ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "another process sees another start time";
    EXPECT_EQ(base::process_start_time(0x7ffffff0), 0u);
}

// A process lives until its last thread ends, and is then a zombie until its parent has asked for its status.
TEST(Process, LivesWithoutItsFirstThread) {
    const pid_t child = ::fork();
    if (child == 0) {
        std::thread([] {
            for (;;)
                ::pause();
        }).detach();
        ::syscall(SYS_exit, 0);  // of this thread alone
    }
#ifndef __SANITIZE_THREAD__  // its runtime has a thread
    EXPECT_EQ(base::other_thread(::getpid()), 0);
#endif
    const std::uint64_t started = base::process_start_time(child);
    while (base::process_state(child).state != 'Z' && base::process_start_time(child) != 0)
        ::usleep(1000);
    EXPECT_EQ(base::process_start_time(child), started);
    const pid_t thread = base::other_thread(child);
    EXPECT_EQ(::kill(thread, 0), 0);
    EXPECT_NE(thread, child);
    ::kill(child, SIGKILL);
    siginfo_t ended;
    ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
    EXPECT_EQ(base::process_start_time(child), 0u);
    ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace osc::test
