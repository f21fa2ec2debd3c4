// Memory that a window has made shared (adopt.cpp), and that the program then moves or grows: realloc and mremap.
// Direct system calls stand for callers that libosc does not see.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "adopt.h"

using namespace adopt;

namespace {

char* unseen_mremap(char* memory, std::size_t bytes, std::size_t new_bytes) {
    return reinterpret_cast<char*>(::syscall(SYS_mremap, memory, bytes, new_bytes, MREMAP_MAYMOVE));
}

// Two arrays, one behind the other, each adopted on its own.
struct Neighbours {
    char* first = static_cast<char*>(map_pages(2 * kLarge));
    char* second = first + kLarge;
    Neighbours() {
        std::memset(first, 1, kLarge);
        std::memset(second, 2, kLarge);
        adopt_once(first, kLarge);
        adopt_once(second, kLarge);
    }
    void check_second() const {
        CHECK_ALL(second, kLarge, [](std::size_t) { return 2; });
    }
};

}  // namespace

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

CASE(a_grown_piece_shares_nothing_with_its_neighbours) {
    constexpr int kPieces = 4;
    unsigned char* pieces[kPieces];
    for (int i = 0; i < kPieces; ++i) {
        pieces[i] = static_cast<unsigned char*>(std::malloc(kLarge));
        std::memset(pieces[i], i + 1, kLarge);
        adopt_once(pieces[i], kLarge);
    }
    for (int i = 0; i < kPieces; ++i) {
        pieces[i] = static_cast<unsigned char*>(i % 2 == 0 ? std::realloc(pieces[i], 3 * kLarge)
                                                           : ::reallocarray(pieces[i], 3, kLarge));
        CHECK(!is_shared(pieces[i] + kLarge));
        std::memset(pieces[i] + kLarge, 100, 2 * kLarge);
        for (int j = 0; j < kPieces; ++j)
            CHECK_ALL(pieces[j], kLarge, [j](std::size_t) { return j + 1; });
    }
    for (unsigned char* piece : pieces)
        std::free(piece);
}

CASE(a_grown_mapping_is_private) {
    Neighbours both;
    errno = 0;
    CHECK(::mremap(both.first, kLarge, 2 * kLarge, 0) == MAP_FAILED && errno == ENOMEM);
    auto* const grown = static_cast<char*>(::mremap(both.first, kLarge, 2 * kLarge, MREMAP_MAYMOVE));
    CHECK(grown != MAP_FAILED && grown != both.first);
    CHECK(!is_shared(grown));
    CHECK_ALL(grown, 2 * kLarge, [](std::size_t i) { return i < kLarge ? 1 : 0; });
    std::memset(grown, 3, 2 * kLarge);
    both.check_second();
    // Of a range of which a part is adopted, too; to given addresses, and smaller.
    auto* const mixed = static_cast<char*>(map_pages(kLarge));
    std::memset(mixed, 6, kLarge);
    adopt_once(mixed + kEnough, kEnough);
    auto* const target = static_cast<char*>(map_pages(kLarge));
    CHECK(::mremap(mixed, kLarge, kLarge / 2, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    CHECK_ALL(target, kLarge / 2, [](std::size_t) { return 6; });
    CHECK(!is_shared(target + kEnough));
    CHECK(!is_shared(mixed + kEnough));
    CHECK(::mremap(both.second, kLarge, kLarge / 2, MREMAP_MAYMOVE) == both.second);
    CHECK(is_shared(both.second));
    CHECK(!is_shared(both.second + kLarge / 2));
    ::munmap(grown, 2 * kLarge);
    ::munmap(target, kLarge);
    ::munmap(both.second, kLarge / 2);
}

CASE(growth_that_libosc_does_not_see_reaches_no_neighbour) {
    Neighbours both;
    char* const grown = unseen_mremap(both.first, kLarge, 2 * kLarge);
    CHECK(grown != MAP_FAILED && grown != both.first);
    std::memset(grown + kLarge, 3, kLarge);
    both.check_second();
    CHECK_ALL(grown, 2 * kLarge, [](std::size_t i) { return i < kLarge ? 1 : 3; });
    ::munmap(grown, 2 * kLarge);
    ::munmap(both.second, kLarge);
}

// Pages that nobody has seen come and go do not show in memory that is adopted later at the same addresses.
CASE(fresh_memory_reads_as_zero_after_its_adoption) {
    auto* memory = static_cast<char*>(map_pages(4 * kLarge));
    ::munmap(memory + kLarge, 3 * kLarge);
    std::memset(memory, 1, kLarge);
    adopt_once(memory, kLarge);
    const long long before = arena_bytes();
    memory = unseen_mremap(memory, kLarge, 4 * kLarge);
    CHECK(memory != MAP_FAILED);
    std::memset(memory, 1, 4 * kLarge);
    ::syscall(SYS_munmap, memory, 4 * kLarge);
    for (int i = 0; i < 3; ++i) {
        CHECK(::mmap(memory, 4 * kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              memory);
        adopt_once(memory, 4 * kLarge);
        CHECK(arena_bytes() <= before);
        CHECK_ALL(memory, 4 * kLarge, [](std::size_t) { return 0; });
        std::memset(memory, 5, 4 * kLarge);
    }
    ::munmap(memory, 4 * kLarge);
    CHECK(arena_bytes() < before);
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
        MPI_Win_lock_all(0, first.win);
        MPI_Put(&value, 1, MPI_CHAR, right(), 100, 1, MPI_CHAR, first.win);
        MPI_Win_unlock_all(first.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_ALL(moved, kLarge, [](std::size_t) { return 5; });
        CHECK_ALL(again, kLarge, [](std::size_t i) { return i == 100 ? 1 : 6; });
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ::munmap(moved, kLarge);
    ::munmap(again, kLarge);
}

// Later calls concern the addresses where the memory lies now.
CASE(moved_memory_can_be_discarded) {
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    auto* const other = static_cast<char*>(map_pages(kEnough));
    std::memset(memory, 5, kLarge);
    adopt_once(memory, kLarge);
    adopt_once(other, kEnough);
    auto* const moved = reinterpret_cast<char*>(
        ::syscall(SYS_mremap, memory, kLarge, kLarge, MREMAP_MAYMOVE | MREMAP_FIXED, map_pages(kLarge)));
    CHECK(moved != MAP_FAILED);
    ::munmap(other, kEnough);
    CHECK_EQ(moved[kEnough], 5);
    CHECK_EQ(::madvise(moved + kEnough, kEnough, MADV_DONTNEED), 0);
    CHECK_ALL(moved, kLarge, [](std::size_t i) { return i >= kEnough && i < 2 * kEnough ? 0 : 5; });
    ::munmap(moved, kLarge);
}
