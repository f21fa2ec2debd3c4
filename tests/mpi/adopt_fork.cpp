// Children of a process whose memory a window has made shared (adopt.cpp): each process sees its own stores only.
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "adopt.h"

using namespace adopt;

namespace {

void (*unseen_free)(void*) = std::free;

int status_of(pid_t child) {
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    return status;
}

}  // namespace

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

// The heap is shared memory, freed behind libosc's back and in use again: the child needs it to make its copies, and
// neither process may see what the other one allocates.
CASE(a_fork_copies_the_heap_in_use) {
    ::mallopt(M_MMAP_THRESHOLD, 1 << 25);
    ::mallopt(M_TRIM_THRESHOLD, 1 << 26);
    auto* const heap = static_cast<char*>(std::malloc(kLarge));
    void* const behind = std::malloc(64);
    std::memset(heap, 1, kLarge);
    adopt_once(heap, kLarge);
    std::vector<void*> maps;
    for (int i = 0; i < 20; ++i) {
        maps.push_back(map_pages(2 * kEnough));
        adopt_once(maps.back(), kEnough);
    }
    (*static_cast<void (*volatile*)(void*)>(&unseen_free))(heap);
    std::vector<std::vector<char>> pieces;
    const auto allocate = [&](char value) {
        for (std::size_t i = 0; i < 200; ++i)
            pieces.emplace_back(100 + i * 37, value);
    };
    const auto right = [&](std::size_t from, char value) {
        bool good = true;
        for (std::size_t i = from; i < pieces.size(); ++i)
            for (const char byte : pieces[i])
                good = good && byte == value;
        return good;
    };
    allocate(1);
    for (int round = 0; round < 3; ++round) {
        const pid_t child = ::fork();
        if (child == 0) {
            for (auto& piece : pieces)
                std::fill(piece.begin(), piece.end(), 3);
            allocate(3);
            ::_exit(right(0, 3) ? 0 : 1);
        }
        CHECK(child > 0);
        const std::size_t before = pieces.size();
        allocate(2);
        CHECK_EQ(status_of(child), 0);
        CHECK(right(before, 2));
        pieces.resize(before);
        CHECK(right(0, 1));
    }
    pieces.clear();
    std::free(behind);
    for (void* map : maps)
        ::munmap(map, 2 * kEnough);
}

// A child that the C library's fork does not make has the parent's pages, and may unmap them.
CASE(a_child_cannot_drop_the_parents_pages) {
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 4, kLarge);
    adopt_once(memory, kLarge);
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) {
        ::madvise(memory + kLarge / 2, kLarge / 4, MADV_DONTNEED);
        ::munmap(memory, kLarge / 2);
        ::_exit(0);
    }
    CHECK(child > 0);
    CHECK_EQ(status_of(child), 0);
    CHECK_ALL(memory, kLarge, [](std::size_t) { return 4; });
    const pid_t forked = ::fork();
    if (forked == 0) {
        ::madvise(memory, kLarge / 4, MADV_DONTNEED);
        ::munmap(memory + kLarge / 2, kLarge / 2);
        ::_exit(memory[0] == 0 && memory[kLarge / 4] == 4 ? 0 : 1);
    }
    CHECK_EQ(status_of(forked), 0);
    CHECK_ALL(memory, kLarge, [](std::size_t) { return 4; });
    ::munmap(memory, kLarge);
}
