// Memory of which the program has asked something that a shared mapping cannot give stays private; pages of zeros take
// no memory.
#include <sys/syscall.h>

#include "adopt.h"

using namespace adopt;

namespace {

bool becomes_shared(void* memory, std::size_t bytes, const char* how) {
    const Window window(memory, bytes, how);
    return is_shared(static_cast<char*>(memory) + bytes / 2);
}

constexpr std::size_t kHuge = std::size_t{2} << 20;

// A line of smaps about the area that contains `address`: kilobytes.
unsigned long kilobytes(const void* address, const char* what) {
    std::FILE* const smaps = std::fopen("/proc/self/smaps", "re");
    if (smaps == nullptr) return 0;
    char line[4096];
    bool within = false;
    unsigned long found = 0;
    while (std::fgets(line, sizeof line, smaps) != nullptr) {
        unsigned long first = 0, end = 0;
        const auto wanted = reinterpret_cast<std::uintptr_t>(address);
        if (std::sscanf(line, "%lx-%lx ", &first, &end) == 2) within = wanted >= first && wanted < end;
        if (within && std::strncmp(line, what, std::strlen(what)) == 0)
            std::sscanf(line + std::strlen(what), ": %lu", &found);
    }
    std::fclose(smaps);
    return found;
}

}  // namespace

CASE(huge_pages_stay_huge) {
    SKIP_IF(size() < 2);
    auto* const place = static_cast<char*>(map_pages(5 * kHuge));
    auto* const memory = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(place) + kHuge - 1) / kHuge * kHuge);
    ::madvise(memory, 4 * kHuge, MADV_HUGEPAGE);
    std::memset(memory, 3, 4 * kHuge);
    const bool was_huge = kilobytes(memory, "AnonHugePages") == 4 * kHuge / 1024;
    CHECK(becomes_shared(memory, 4 * kHuge, "always"));
    // If it is not huge, the kernel cannot make it so (MADV_COLLAPSE, Linux 6.1).
    constexpr int kCollapse = 25;
    CHECK(!was_huge || kilobytes(memory, "ShmemPmdMapped") == 4 * kHuge / 1024 ||
          ::madvise(memory, 4 * kHuge, kCollapse) != 0);
    CHECK_ALL(memory, 4 * kHuge, [](std::size_t) { return 3; });
    ::munmap(place, 5 * kHuge);
}

CASE(advice_about_forks_and_dumps_is_kept) {
    SKIP_IF(size() < 2);
    for (const int advice : {MADV_DONTFORK, MADV_WIPEONFORK, MADV_DONTDUMP}) {
        auto* const memory = static_cast<char*>(map_pages(4 * kEnough));
        std::memset(memory, 3, 4 * kEnough);
        CHECK_EQ(::madvise(memory + 2 * kEnough, 4096, advice), 0);
        CHECK(!becomes_shared(memory, 4 * kEnough, "always"));
        CHECK(becomes_shared(memory, 2 * kEnough, "always"));
        CHECK_ALL(memory, 4 * kEnough, [](std::size_t) { return 3; });
        ::munmap(memory, 4 * kEnough);
    }
}

CASE(a_memory_policy_is_kept) {
    SKIP_IF(size() < 2);
    auto* const memory = static_cast<char*>(map_pages(2 * kEnough));
    std::memset(memory, 3, 2 * kEnough);
    constexpr int kBind = 2;
    const unsigned long node = 1;
    const bool bound = ::syscall(SYS_mbind, memory, 2 * kEnough, kBind, &node, 8 * sizeof node, 0U) == 0;
    CHECK_EQ(becomes_shared(memory, 2 * kEnough, "always"), !bound);
    ::munmap(memory, 2 * kEnough);
}

CASE(auto_leaves_mappings_of_files_alone) {
    SKIP_IF(size() < 2);
    const int file = ::memfd_create("data", MFD_CLOEXEC);
    CHECK(file >= 0);
    CHECK_EQ(::ftruncate(file, 2 * kEnough), 0);
    auto* const memory = static_cast<char*>(::mmap(nullptr, 2 * kEnough, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
    CHECK(memory != MAP_FAILED);
    memory[5] = 7;
    CHECK(!becomes_shared(memory, 2 * kEnough, "auto"));
    CHECK(becomes_shared(memory, 2 * kEnough, "always"));
    CHECK_EQ(memory[5], 7);
    CHECK_EQ(memory[kEnough], 0);
    ::munmap(memory, 2 * kEnough);
    ::close(file);
}

CASE(pages_of_zeros_take_no_memory) {
    SKIP_IF(size() < 2);
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 0, kLarge / 2);  // the rest is the system's page of zeros
    long sum = 0;
    for (std::size_t at = kLarge / 2; at < kLarge; at += 4096)
        sum += static_cast<volatile char*>(memory)[at];
    CHECK_EQ(sum, 0L);
    for (std::size_t at = 4095; at < kLarge; at += 8 * kEnough)
        memory[at] = 9;
    const long long before = arena_bytes();
    adopt_once(memory, kLarge);
    CHECK(arena_bytes() < before + static_cast<long long>(kLarge / 8));
    CHECK_ALL(memory, kLarge, [](std::size_t at) { return at % (8 * kEnough) == 4095 ? 9 : 0; });
    ::munmap(memory, kLarge);
}
