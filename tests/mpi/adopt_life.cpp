// What a program does with memory that a window has made shared (adopt.cpp): free, munmap, madvise and mprotect keep
// their meaning, and nothing takes memory twice. adopt_moves.cpp has realloc and mremap, adopt_fork.cpp fork.
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "adopt.h"

using namespace adopt;

CASE(freed_memory_goes_back) {
    // A piece with a mapping of its own, then a piece of the heap, whose end the C library gives back.
    for (const int threshold : {1 << 20, 1 << 25}) {
        ::mallopt(M_MMAP_THRESHOLD, threshold);
        ::mallopt(M_TRIM_THRESHOLD, 1 << 20);
        for (int i = 0; i < 3; ++i) {
            auto* const piece = static_cast<char*>(std::malloc(kLarge));
            std::memset(piece, 1, kLarge);
            adopt_once(piece, kLarge);
            const long long with = arena_bytes();
            std::free(piece);
            CHECK(arena_bytes() <= with - static_cast<long long>(kLarge - kEnough));
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

// A piece of the heap stays mapped when it is freed: what malloc puts there next is not the window's.
CASE(freed_heap_pieces_become_private) {
    ::mallopt(M_MMAP_THRESHOLD, 1 << 25);
    auto* const piece = static_cast<char*>(std::malloc(16 * kEnough));
    void* const behind = std::malloc(64);
    CHECK(piece != nullptr && behind != nullptr);
    std::memset(piece, 1, 16 * kEnough);
    adopt_once(piece, 16 * kEnough);
    const volatile auto middle = reinterpret_cast<std::uintptr_t>(piece + 8 * kEnough);
    std::free(piece);
    CHECK(!is_shared(reinterpret_cast<const void*>(middle)));
    auto* const again = static_cast<char*>(std::malloc(16 * kEnough));
    std::memset(again, 2, 16 * kEnough);
    adopt_once(again, 16 * kEnough);
    CHECK_ALL(again, 16 * kEnough, [](std::size_t) { return 2; });
    std::free(again);
    std::free(behind);
}

CASE(discarding_has_the_bounds_of_the_system) {
    auto* const memory = static_cast<char*>(map_pages(kEnough));
    std::memset(memory, 4, kEnough);
    adopt_once(memory, kEnough);
    errno = 0;
    CHECK(::madvise(memory + 1, 4096, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK_EQ(memory[1], 4);
    CHECK_EQ(::madvise(memory + 4096, 100, MADV_DONTNEED), 0);
    CHECK_ALL(memory, kEnough, [](std::size_t i) { return i >= 4096 && i < 8192 ? 0 : 4; });
    // What is not mapped is an error, and the rest is discarded.
    CHECK_EQ(::munmap(memory + 16384, 4096), 0);
    CHECK(::madvise(memory + 12288, 16384, MADV_DONTNEED) == -1 && errno == ENOMEM);
    CHECK(memory[12288] == 0 && memory[20480] == 0 && memory[28672] == 4);
    ::munmap(memory, kEnough);
}

namespace {

void (*kept_free)(void*) = std::free;

}  // namespace

// Some libraries keep the function in a variable, and may compare it.
CASE(pointers_to_functions_stay) {
    auto* const function = *static_cast<void (*volatile*)(void*)>(&kept_free);
    auto* const memory = static_cast<char*>(map_pages(kEnough));
    adopt_once(memory, kEnough);
    CHECK(*static_cast<void (*volatile*)(void*)>(&kept_free) == function);
    ::munmap(memory, kEnough);
}

namespace {

// A directory whose path fills more than a page of /proc/self/maps, where a line end takes four characters.
struct LongPath {
    static constexpr int kFolders = 15;
    const std::string name = std::string(250, '\n');
    int fds[kFolders + 1] = {};
    std::string root = "/tmp/osc-adopt-" + std::string(6, 'X');  // mkdtemp replaces them
    LongPath() {
        CHECK(::mkdtemp(root.data()) != nullptr);
        fds[0] = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int i = 0; i < kFolders; ++i) {
            CHECK_EQ(::mkdirat(fds[i], name.c_str(), 0700), 0);
            fds[i + 1] = ::openat(fds[i], name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
    }
    ~LongPath() {
        for (int i = kFolders; i > 0; --i) {
            ::close(fds[i]);
            ::unlinkat(fds[i - 1], name.c_str(), AT_REMOVEDIR);
        }
        ::close(fds[0]);
        ::rmdir(root.c_str());
    }
    LongPath(const LongPath&) = delete;
    LongPath& operator=(const LongPath&) = delete;
    int file() const {
        const int fd = ::openat(fds[kFolders], name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && ::ftruncate(fd, 4096) == 0);
        ::unlinkat(fds[kFolders], name.c_str(), 0);
        return fd;
    }
};

}  // namespace

// The list of mappings ends early for a reader with a buffer: no page may be dropped then.
CASE(an_unreadable_list_of_mappings_loses_nothing) {
    auto* const memory = static_cast<char*>(map_pages(kEnough));
    auto* const other = static_cast<char*>(map_pages(kEnough));
    std::memset(memory, 4, kEnough);
    adopt_once(memory, kEnough);
    adopt_once(other, kEnough);
    {
        const LongPath path;
        const int fd = path.file();
        auto* const low = reinterpret_cast<void*>(std::uintptr_t{1} << 28);
        void* const mapping = ::mmap(low, 4096, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
        CHECK(mapping == low);
        CHECK_EQ(::munmap(other, kEnough), 0);
        CHECK_ALL(memory, kEnough, [](std::size_t) { return 4; });
        const Window window(map_pages(kEnough), kEnough);
        ::munmap(mapping, 4096);
        ::close(fd);
    }
    CHECK_EQ(::madvise(memory, kEnough, MADV_DONTNEED), 0);
    CHECK_ALL(memory, kEnough, [](std::size_t) { return 0; });
    ::munmap(memory, kEnough);
}
