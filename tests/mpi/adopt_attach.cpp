// MPI_Win_attach makes whole pages of a region shared, as MPI_Win_create does with a window's (adopt.cpp): operations
// reach every byte before and after, on whole pages and edges with one atomicity, and a region that takes another's
// place is not confused with it.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "adopt_exercise.h"
#include "dynamic_window.h"

using namespace adopt;
using osct::address_at;

namespace {

alignas(8) char static_memory[3 * kEnough];

// A dynamic window whose attached memory `how` decides about.
struct Regions {
    MPI_Win win = MPI_WIN_NULL;
    explicit Regions(const char* how = "always") {
        const Info info{{"osc_adopt", how}};
        CHECK_OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win));
    }
    ~Regions() { CHECK_OK(MPI_Win_free(&win)); }
    Regions(const Regions&) = delete;
    Regions& operator=(const Regions&) = delete;
    void attach(void* base, std::size_t bytes) const {
        CHECK_OK(MPI_Win_attach(win, base, static_cast<MPI_Aint>(bytes)));
    }
    void detach(void* base) const { CHECK_OK(MPI_Win_detach(win, base)); }
};

// Often enough that the origin maps the region.
void exercise_region(MPI_Win win, char* base, std::size_t bytes, int seed) {
    exercise(win, base, bytes, address_at(osct::right(), base), seed, 6);
}

}  // namespace

CASE(attached_memory_becomes_shared) {
    SKIP_IF(size() < 2);
    std::vector<char> heap(4 * kEnough);
    auto* const mapped = static_cast<char*>(map_pages(2 * kEnough));
    char* const given[] = {heap.data() + 24, mapped, static_memory};
    const std::size_t sizes[] = {4 * kEnough - 64, 2 * kEnough, sizeof static_memory};
    const Regions regions;
    for (std::size_t i = 0; i < std::size(given); ++i) {
        for (std::size_t at = 0; at < sizes[i]; ++at)
            given[i][at] = static_cast<char>(at * 5 + i);
        regions.attach(given[i], sizes[i]);
        CHECK(is_shared(given[i] + sizes[i] / 2));
        CHECK_ALL(given[i], sizes[i], [i](std::size_t at) { return static_cast<char>(at * 5 + i); });
    }
    for (std::size_t i = 0; i < std::size(given); ++i)
        exercise_region(regions.win, given[i], sizes[i], static_cast<int>(i));
    for (std::size_t i = 0; i < std::size(given); ++i) {
        regions.detach(given[i]);
        CHECK(is_shared(given[i] + sizes[i] / 2));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ::munmap(mapped, 2 * kEnough);
}

CASE(the_windows_key_and_auto_decide_for_regions) {
    SKIP_IF(size() < 2);
    constexpr std::size_t kAll = 32 * kLarge;  // its first bytes are at no address that another case has used
    auto* const memory = static_cast<char*>(map_pages(kAll));
    std::memset(memory, 1, kLarge);
    {
        const Regions regions("off");
        regions.attach(memory, 2 * kEnough);
        CHECK(!is_shared(memory + kEnough));
        exercise_region(regions.win, memory, 2 * kEnough, 1);
        regions.detach(memory);
    }
    {
        const Regions regions("auto");
        regions.attach(memory, kEnough / 2);
        CHECK(!is_shared(memory));
        regions.detach(memory);
        regions.attach(memory, 2 * kEnough);
        CHECK(is_shared(memory + kEnough));
        exercise_region(regions.win, memory, 2 * kEnough, 2);
        // The copy of large memory pays when it is attached again.
        char* const large = memory + 4 * kEnough;
        regions.attach(large, kLarge - 4 * kEnough);
        CHECK(!is_shared(large + kEnough));
        regions.detach(large);
        regions.attach(large, kLarge - 4 * kEnough);
        CHECK(is_shared(large + kEnough));
        CHECK_EQ(osct::info_value(regions.win, "osc_adopt"), "auto");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ::munmap(memory, kAll);
}

// The region's first and last bytes lie on pages with data of the owner, which stores there all the time.
CASE(neighbours_of_a_region_stay_private) {
    SKIP_IF(size() < 2);
    auto* const pages = static_cast<char*>(map_pages(4 * kEnough));
    char* const base = pages + 1000;
    const std::size_t bytes = 4 * kEnough - 3000;
    const Regions regions;
    regions.attach(base, bytes);
    CHECK(is_shared(base + bytes / 2));
    CHECK(!is_shared(pages));
    CHECK(!is_shared(base + bytes));
    store_beside(regions.win, base, bytes, address_at(0, base));
    regions.detach(base);
    MPI_Barrier(MPI_COMM_WORLD);
    ::munmap(pages, 4 * kEnough);
}

// Elements on both sides of an edge and across it, updated by all ranks at once, the owner included; each origin begins
// by another path and maps the region meanwhile.
CASE(atomics_are_atomic_on_and_across_edges_of_a_region) {
    auto* const pages = static_cast<char*>(map_pages(2 * kEnough));
    char* const base = pages + 4096 - 36;  // the first page has four elements and a half
    const Regions regions;
    regions.attach(base, 2 * kEnough - 8192);
    CHECK(size() < 2 || is_shared(pages + 4096));
    update_words(regions.win, base, address_at(0, base));
    regions.detach(base);
    ::munmap(pages, 2 * kEnough);
}

// Peers have mapped the region when other memory takes its address.
CASE(a_region_is_attached_again) {
    SKIP_IF(size() < 2);
    auto* const memory = static_cast<char*>(map_pages(4 * kEnough));
    std::memset(memory, 1, 4 * kEnough);
    const Regions regions;
    for (int round = 0; round < 6; ++round) {
        const std::size_t bytes = kEnough * static_cast<std::size_t>(1 + round % 3);
        regions.attach(memory, bytes);
        CHECK(is_shared(memory + bytes / 2));
        exercise_region(regions.win, memory, bytes, round);
        regions.detach(memory);
        CHECK(is_shared(memory + bytes / 2));
        MPI_Barrier(MPI_COMM_WORLD);
        if (round % 2 == 0) continue;
        // Half of the memory becomes another's, then the rest.
        char* const half = memory + (round == 1 ? 0 : 2 * kEnough);
        CHECK_EQ(::munmap(half, 2 * kEnough), 0);
        CHECK(::mmap(half, 2 * kEnough, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              half);
        CHECK_ALL(half, 2 * kEnough, [](std::size_t) { return 0; });
        std::memset(half, 2, 2 * kEnough);
    }
    auto* piece = static_cast<char*>(std::malloc(4 * kEnough));
    for (int round = 0; round < 4; ++round) {
        std::memset(piece, round, 4 * kEnough);
        regions.attach(piece, 4 * kEnough);
        exercise_region(regions.win, piece, 4 * kEnough, round);
        regions.detach(piece);
        MPI_Barrier(MPI_COMM_WORLD);
        const char first = piece[0], last = piece[4 * kEnough - 1];
        piece = static_cast<char*>(std::realloc(piece, (round % 2 == 0 ? 16 : 4) * kEnough));
        CHECK_EQ(piece[0], first);
        CHECK_EQ(piece[4 * kEnough - 1], last);
    }
    std::free(piece);
    ::munmap(memory, 4 * kEnough);
}

// Both kinds of windows over the same memory, in both orders; and memory that is private in one stays private.
CASE(regions_overlap_other_windows) {
    SKIP_IF(size() < 2);
    auto* const memory = static_cast<char*>(map_pages(8 * kEnough));
    std::memset(memory, 1, 8 * kEnough);
    {
        const Window created(memory, 3 * kEnough, "always");
        const Regions regions, further;
        regions.attach(memory + kEnough, 4 * kEnough);
        further.attach(memory + 500, 5 * kEnough - 500);
        for (const std::size_t at : {std::size_t{0}, kEnough, 4 * kEnough, 5 * kEnough - 1})
            CHECK(is_shared(memory + at));
        exercise_region(regions.win, memory + kEnough, 4 * kEnough, 3);
        exercise_region(further.win, memory + 500, 5 * kEnough - 500, 4);
        const Window last(memory, 8 * kEnough, "always");
        CHECK(is_shared(memory + 7 * kEnough));
        MPI_Win_lock_all(0, created.win);
        MPI_Win_lock_all(0, regions.win);
        const MPI_Aint there = address_at(right(), memory);
        for (int i = 0; i < 8; ++i) {
            const char value = static_cast<char>(i + rank());
            char seen = 0;
            CHECK_OK(
                MPI_Put(&value, 1, MPI_CHAR, right(), static_cast<MPI_Aint>(2 * kEnough), 1, MPI_CHAR, created.win));
            CHECK_OK(MPI_Win_flush(right(), created.win));
            CHECK_OK(MPI_Get(&seen, 1, MPI_CHAR, right(), there + static_cast<MPI_Aint>(2 * kEnough), 1, MPI_CHAR,
                             regions.win));
            CHECK_OK(MPI_Win_flush(right(), regions.win));
            CHECK_EQ(seen, value);
        }
        MPI_Win_unlock_all(regions.win);
        MPI_Win_unlock_all(created.win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    auto* const other = static_cast<char*>(map_pages(2 * kEnough));
    {
        const Regions apart("off"), regions;
        apart.attach(other, 2 * kEnough);
        regions.attach(other, 2 * kEnough);
        CHECK(!is_shared(other + kEnough));
        const Window created(other, 2 * kEnough, "always");
        CHECK(!is_shared(other + kEnough));
        exercise_region(apart.win, other, 2 * kEnough, 5);
        exercise_region(regions.win, other, 2 * kEnough, 6);
    }
    ::munmap(other, 2 * kEnough);
    ::munmap(memory, 8 * kEnough);
}

// A result that is under way may land in any memory: none is exchanged meanwhile.
CASE(operations_in_flight_keep_memory_private) {
    SKIP_IF(osct::debug_setting("fake_nodes").empty() || size() < 4);
    auto* const memory = static_cast<char*>(map_pages(4 * kEnough));
    std::memset(memory, 5, 4 * kEnough);
    std::vector<char> results(static_cast<std::size_t>(size()));
    const Regions regions;
    const Window source(static_memory, 64, "off");
    MPI_Win_lock_all(0, source.win);
    for (int target = 0; target < size(); ++target)
        CHECK_OK(MPI_Get(&results[static_cast<std::size_t>(target)], 1, MPI_CHAR, target, 0, 1, MPI_CHAR, source.win));
    regions.attach(memory, 2 * kEnough);
    CHECK(!is_shared(memory + kEnough));
    CHECK_OK(MPI_Win_flush_all(source.win));
    regions.attach(memory + 2 * kEnough, 2 * kEnough);
    CHECK(is_shared(memory + 3 * kEnough));
    CHECK_OK(MPI_Win_unlock_all(source.win));
    exercise_region(regions.win, memory, 2 * kEnough, 1);
    exercise_region(regions.win, memory + 2 * kEnough, 2 * kEnough, 2);
}

// A large piece of MPI_Alloc_mem has a mapping of its own in its owner and in each origin.
CASE(large_pieces_of_alloc_mem_are_mapped) {
    SKIP_IF(size() < 2);
    const Regions regions("off");
    char* piece = nullptr;
    MPI_Alloc_mem(4 * kLarge, MPI_INFO_NULL, &piece);
    const auto mappings = [] {
        std::FILE* const maps = std::fopen("/proc/self/maps", "re");
        char line[4096];
        int count = 0;
        while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr)
            count += std::strstr(line, "memfd:osc") != nullptr ? 1 : 0;
        if (maps != nullptr) std::fclose(maps);
        return count;
    };
    const int before = mappings();
    for (int round = 0; round < 3; ++round) {
        regions.attach(piece + 100, 2 * kEnough);
        exercise_region(regions.win, piece + 100, 2 * kEnough, round);
        CHECK(mappings() > before);
        regions.detach(piece + 100);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Free_mem(piece);
}
