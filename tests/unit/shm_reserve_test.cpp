// Memory that a heap reserves in the arena's file: its pages, its offsets, and what a forked child sees of it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "fake_system.h"
#include "plugins/adopt/adoption.h"

namespace osc::test {
namespace {

using shm::Adoption;
using shm::SharedPart;

constexpr std::size_t kPage = 4096;

char* reserve(std::size_t bytes) {
    auto* const memory = static_cast<char*>(Adoption::mine().reserve(bytes));
    EXPECT_NE(memory, nullptr) << std::strerror(errno);
    return memory;
}

bool all(const char* memory, std::size_t bytes, char value) {
    return std::all_of(memory, memory + bytes, [value](char byte) { return byte == value; });
}

// The part of the file that contains reserved memory. adopt() exchanges nothing there.
SharedPart part_of(const char* memory, std::size_t bytes) {
    std::string why;
    return Adoption::mine().adopt(memory, bytes, {}, why);
}

void give_back(char* memory, std::size_t bytes) {
    EXPECT_EQ(::munmap(memory, bytes), 0);
    Adoption::mine().sweep();
}

// libosc.so registers them for the plugin.
const int kHandlers =
    ::pthread_atfork(Adoption::before_fork, Adoption::after_fork_in_parent, Adoption::after_fork_in_child);

// The exit status of a forked child that runs `body`, which tells whether all was right.
template <class F>
int in_child(F&& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

TEST(Reserve, IsFreshMemoryOfTheFile) {
    constexpr std::size_t kBytes = kMiB + 100;
    char* const memory = reserve(kBytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_TRUE(Adoption::meets(memory, kBytes));
    EXPECT_TRUE(all(memory, kMiB + kPage, 0));
    const SharedPart part = part_of(memory, kMiB);
    ASSERT_EQ(part.bytes(), kMiB);
    std::memset(memory, 7, kBytes);
    char seen[16] = {};
    const auto at = static_cast<off_t>(part.offset + kMiB - sizeof seen);
    ASSERT_EQ(::pread(shm::Arena::mine().address().fd, seen, sizeof seen, at), static_cast<ssize_t>(sizeof seen));
    EXPECT_TRUE(all(seen, sizeof seen, 7));
    give_back(memory, kMiB + kPage);
}

TEST(Reserve, PiecesShareNoOffset) {
    constexpr int kPieces = 20;
    char* pieces[kPieces];
    for (int i = 0; i < kPieces; ++i) {
        pieces[i] = reserve(16 * kPage);
        ASSERT_NE(pieces[i], nullptr);
        std::memset(pieces[i], i, 16 * kPage);
    }
    for (int i = 0; i < kPieces; ++i)
        EXPECT_TRUE(all(pieces[i], 16 * kPage, static_cast<char>(i)));
    for (char* piece : pieces)
        give_back(piece, 16 * kPage);
}

TEST(Reserve, UnmappedMemoryLosesItsPages) {
    char* memory = reserve(kMiB);
    ASSERT_NE(memory, nullptr);
    const std::size_t before = backed(shm::Arena::mine());
    for (int i = 0; i < 5; ++i) {
        std::memset(memory, 3, kMiB);
        EXPECT_GE(backed(shm::Arena::mine()), before + kMiB);
        EXPECT_EQ(::munmap(memory, kMiB), 0);
        memory = reserve(kMiB);  // perhaps at the same addresses
        ASSERT_NE(memory, nullptr);
        EXPECT_LT(backed(shm::Arena::mine()), before + kMiB);
        EXPECT_TRUE(all(memory, kMiB, 0));
        EXPECT_EQ(::munmap(memory, kMiB), 0);
        Adoption::mine().sweep();
        EXPECT_FALSE(Adoption::meets(memory, kMiB));
        memory = reserve(kMiB);
    }
    give_back(memory, kMiB);
}

// mremap() has moved reserved memory away from its offsets' addresses.
TEST(Reserve, OffsetsOfMovedMemoryAreNotTakenTwice) {
    char* const memory = reserve(kMiB);
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 5, kMiB);
    void* const elsewhere = ::mmap(nullptr, 64 * kMiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_EQ(::mremap(memory, kMiB, kMiB, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere), elsewhere);
    char* const next = reserve(kMiB);
    ASSERT_NE(next, nullptr);
    std::memset(next, 6, kMiB);
    EXPECT_TRUE(all(static_cast<char*>(elsewhere), kMiB, 5));
    EXPECT_EQ(::munmap(elsewhere, 64 * kMiB), 0);
    give_back(next, kMiB);
}

TEST(Reserve, DiscardedPagesReadAsZero) {
    char* const memory = reserve(kMiB);
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 5, kMiB);
    const std::size_t before = backed(shm::Arena::mine());
    EXPECT_TRUE(Adoption::mine().discard_reserved(memory + kPage, kMiB / 2));
    EXPECT_LE(backed(shm::Arena::mine()), before - kMiB / 2);
    EXPECT_TRUE(all(memory, kPage, 5));
    EXPECT_TRUE(all(memory + kPage, kMiB / 2, 0));
    EXPECT_TRUE(all(memory + kPage + kMiB / 2, kMiB / 2 - kPage, 5));
    give_back(memory, kMiB);
}

TEST(Reserve, AForkedChildHasACopy) {
    char* const memory = reserve(kMiB);
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 5, kMiB);
    EXPECT_EQ(in_child([&] {
                  bool good = all(memory, kMiB, 5);
                  good = good && Adoption::mine().discard_reserved(memory, kMiB / 2) && all(memory, kMiB / 2, 0);
                  std::memset(memory + kMiB / 2, 9, kMiB / 2);
                  errno = 0;
                  good = good && Adoption::mine().reserve(kMiB) == nullptr && errno == ENOTSUP;
                  return good && ::munmap(memory, kMiB / 4) == 0;
              }),
              0);
    EXPECT_TRUE(all(memory, kMiB, 5));
    give_back(memory, kMiB);
}

TEST(Reserve, IsRefusedWherePagesMustComeEarly) {
    const FakeSystem system;
    system.write("/proc/sys/vm/overcommit_memory", "2\n");
    Arena arena(system.memory(), 0);
    Adoption adoption(arena);
    errno = 0;
    EXPECT_EQ(adoption.reserve(kMiB), nullptr);
    EXPECT_EQ(errno, ENOTSUP);
    EXPECT_EQ(Adoption::mine().reserve(0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(Adoption::mine().reserve(std::size_t{1} << 60), nullptr);
    EXPECT_EQ(errno, ENOMEM);
}

}  // namespace
}  // namespace osc::test
