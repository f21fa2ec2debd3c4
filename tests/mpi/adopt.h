// What the tests of adopted memory share: a window over given memory, and what the kernel says about an address.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "harness.h"

namespace adopt {

/// From here on OSC_ADOPT=auto adopts.
inline constexpr std::size_t kEnough = std::size_t{64} << 10;

/// Up to here it does so in the memory's first window.
inline constexpr std::size_t kSmall = std::size_t{1} << 20;

/// A window of all ranks, each with the same number of bytes.
struct Window {
    MPI_Win win = MPI_WIN_NULL;
    Window(void* base, std::size_t bytes, const char* how = nullptr) {
        MPI_Info info = MPI_INFO_NULL;
        if (how != nullptr) {
            MPI_Info_create(&info);
            MPI_Info_set(info, "osc_adopt", how);
        }
        CHECK_OK(MPI_Win_create(base, static_cast<MPI_Aint>(bytes), 1, info, MPI_COMM_WORLD, &win));
        if (how != nullptr) MPI_Info_free(&info);
    }
    ~Window() { CHECK_OK(MPI_Win_free(&win)); }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
};

/// Private anonymous memory of whole pages.
inline void* map_pages(std::size_t bytes) {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

/// Whether the page at an address lies in an arena's file.
inline bool is_shared(const void* address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return false;
    char line[4096];
    bool found = false;
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        unsigned long first = 0, end = 0;
        char rights[8] = "";
        if (std::sscanf(line, "%lx-%lx %7s", &first, &end, rights) != 3 || wanted < first || wanted >= end) continue;
        found = rights[3] == 's' && std::strstr(line, "memfd:osc") != nullptr;
    }
    std::fclose(maps);
    return found;
}

/// Memory of this process's arena, in bytes.
inline long long arena_bytes() {
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

/// Whatever its size, and whatever lay there before.
inline void adopt_once(void* memory, std::size_t bytes) {
    const Window window(memory, bytes, "always");
    CHECK(is_shared(static_cast<char*>(memory) + bytes / 2));
}

inline constexpr std::size_t kLarge = 256 * kEnough;  // 16 MiB

}  // namespace adopt
