// What a program does with memory that a window has made shared (adopt.cpp): free, realloc, munmap, madvise, mprotect,
// mremap and fork keep their meaning, and nothing takes memory twice.
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "adopt.h"

using namespace adopt;
using osct::rank;

namespace {

// Memory of this process's arena, in bytes.
long long arena_bytes() {
    for (int fd = 3; fd < 1024; ++fd) {
        char path[64], name[64] = "";
        std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        const ssize_t length = ::readlink(path, name, sizeof name - 1);
        struct stat file = {};
        if (length > 0 && std::strncmp(name, "/memfd:osc ", 11) == 0 && ::fstat(fd, &file) == 0)
            return file.st_blocks * 512LL;
    }
    return -1;
}

void adopt_once(void* memory, std::size_t bytes) {
    const Window window(memory, bytes);
    CHECK(is_shared(static_cast<char*>(memory) + bytes / 2));
}

constexpr std::size_t kLarge = 256 * kEnough;  // 16 MiB

}  // namespace

CASE(freed_memory_goes_back) {
    // A piece with a mapping of its own, then a piece of the heap, whose end the C library gives back.
    for (const int threshold : {1 << 20, 1 << 25}) {
        ::mallopt(M_MMAP_THRESHOLD, threshold);
        ::mallopt(M_TRIM_THRESHOLD, 1 << 20);
        adopt_once(map_pages(kEnough), kEnough);
        const long long before = arena_bytes();
        CHECK(before > 0);
        for (int i = 0; i < 3; ++i) {
            auto* const piece = static_cast<char*>(std::malloc(kLarge));
            std::memset(piece, 1, kLarge);
            adopt_once(piece, kLarge);
            CHECK(arena_bytes() >= before + static_cast<long long>(kLarge - kEnough));
            const volatile auto begin = reinterpret_cast<std::uintptr_t>(piece);
            std::free(piece);
            // What lies behind a piece on the heap keeps the heap as long as it is.
            const bool unmapped =
                threshold < (1 << 25) || reinterpret_cast<std::uintptr_t>(::sbrk(0)) <= begin + kEnough;
            if (unmapped) CHECK(arena_bytes() < before + static_cast<long long>(2 * kEnough));
        }
    }
}

CASE(adopted_memory_is_not_counted_twice) {
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 1, kLarge);
    const long before = osct::resident_kib();
    adopt_once(memory, kLarge);
    CHECK(osct::resident_kib() < before + static_cast<long>(kLarge / 2048));
    ::munmap(memory, kLarge);
}

CASE(untouched_pages_stay_without_memory) {
    auto* const memory = static_cast<char*>(map_pages(16 * kLarge));
    memory[5 * kLarge] = 1;
    const long long before = arena_bytes();
    adopt_once(memory, 16 * kLarge);
    CHECK(arena_bytes() < before + static_cast<long long>(kLarge));
    CHECK_EQ(memory[5 * kLarge], 1);
    CHECK_EQ(memory[7 * kLarge], 0);
    ::munmap(memory, 16 * kLarge);
}

CASE(realloc_grows_it) {
    auto* piece = static_cast<unsigned char*>(std::malloc(kLarge));
    const auto pattern = [](std::size_t i) { return static_cast<unsigned char>(i * 13 + i / 256); };
    for (std::size_t i = 0; i < kLarge; ++i)
        piece[i] = pattern(i);
    adopt_once(piece, kLarge);
    for (const std::size_t factor : {2, 5, 3}) {
        piece = static_cast<unsigned char*>(std::realloc(piece, factor * kLarge));
        CHECK_ALL(piece, kLarge, pattern);
        std::memset(piece + kLarge, 9, (factor - 1) * kLarge);
        const Window window(piece, factor * kLarge);
        CHECK_ALL(piece, kLarge, pattern);
        CHECK_ALL(piece + kLarge, (factor - 1) * kLarge, [](std::size_t) { return 9; });
    }
    std::free(piece);
}

// The pages of one adoption move away; the addresses get other memory, which a window adopts too.
CASE(moved_memory_keeps_its_content) {
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 5, kLarge);
    adopt_once(memory, kLarge);
    auto* const moved = reinterpret_cast<char*>(
        ::syscall(SYS_mremap, memory, kLarge, kLarge, MREMAP_MAYMOVE | MREMAP_FIXED, map_pages(kLarge)));
    CHECK(moved != MAP_FAILED);
    auto* const again = static_cast<char*>(
        ::mmap(memory, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    std::memset(again, 6, kLarge);
    {
        const Window first(again, kLarge);
        const Window second(moved, kLarge);
        CHECK(is_shared(moved));
        const char value = 1;
        const int right = (rank() + 1) % osct::size();
        MPI_Win_lock_all(0, first.win);
        MPI_Put(&value, 1, MPI_CHAR, right, 100, 1, MPI_CHAR, first.win);
        MPI_Win_unlock_all(first.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_ALL(moved, kLarge, [](std::size_t) { return 5; });
        CHECK_ALL(again, kLarge, [](std::size_t i) { return i == 100 ? 1 : 6; });
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ::munmap(moved, kLarge);
    ::munmap(again, kLarge);
}

CASE(discarded_pages_read_as_zero) {
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 4, kLarge);
    adopt_once(memory, kLarge / 2);
    CHECK_EQ(::madvise(memory + kLarge / 4, kLarge / 2, MADV_DONTNEED), 0);
    CHECK_ALL(memory, kLarge, [](std::size_t i) { return i >= kLarge / 4 && i < kLarge / 4 * 3 ? 0 : 4; });
    ::munmap(memory, kLarge);
}

CASE(a_part_can_be_unmapped) {
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 4, kLarge);
    adopt_once(memory, kLarge);
    const long long before = arena_bytes();
    CHECK_EQ(::munmap(memory + kLarge / 4, kLarge / 4), 0);
    CHECK(arena_bytes() <= before - static_cast<long long>(kLarge / 4));
    auto* const hole = static_cast<char*>(::mmap(memory + kLarge / 4, kLarge / 4, PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    CHECK_ALL(hole, kLarge / 4, [](std::size_t) { return 0; });
    std::memset(hole, 8, kLarge / 4);
    adopt_once(memory, kLarge);
    CHECK(is_shared(hole));
    CHECK_ALL(memory, kLarge, [](std::size_t i) { return i >= kLarge / 4 && i < kLarge / 2 ? 8 : 4; });
    CHECK_EQ(::mprotect(memory, 4096, PROT_READ), 0);
    CHECK_EQ(memory[17], 4);
    ::munmap(memory, kLarge);
}

// As before the adoption: each process sees its own stores only.
CASE(a_fork_copies) {
    auto* const memory = static_cast<volatile char*>(map_pages(kLarge));
    std::memset(const_cast<char*>(memory), 4, kLarge / 2);
    adopt_once(const_cast<char*>(memory), kLarge);
    int to_child[2], to_parent[2];
    CHECK(::pipe(to_child) == 0 && ::pipe(to_parent) == 0);
    const pid_t child = ::fork();
    char byte = 0;
    if (child == 0) {
        memory[1] = 77;
        bool good = ::write(to_parent[1], "w", 1) == 1 && ::read(to_child[0], &byte, 1) == 1;
        good = good && memory[0] == 4 && memory[1] == 77 && memory[kLarge - 1] == 0 && memory[kLarge / 4] == 4;
        ::_exit(good ? 0 : 1);
    }
    CHECK(child > 0);
    CHECK(::read(to_parent[0], &byte, 1) == 1);
    CHECK_EQ(memory[1], 4);
    memory[0] = 99;
    memory[kLarge - 1] = 98;
    CHECK(::write(to_child[1], "p", 1) == 1);
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK_EQ(memory[0], 99);
    for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]})
        ::close(fd);
    CHECK_EQ(std::system("exit 3"), 3 << 8);
    adopt_once(const_cast<char*>(memory), kLarge);
    ::munmap(const_cast<char*>(memory), kLarge);
}
