// A mutant is one deliberate error in the source. tests/evidence/mutate.py compiles many into one build of a copy of
// the tree; this header, which the copy has as base/mutant.h, selects at most one of them for each process.
//
// The environment variable MUTANT has the number of the mutant that is on; without it none is. MUTANT_REACHED names a
// file of one byte for each number: every process sets the byte of each mutant that it reaches, and no mutant is on.
// Both are read once, at the first call, which may come before main, in any thread, and in a child after fork. The
// first call before the C library knows the environment leaves the decision to a later one.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

namespace osc_mutant {

inline constexpr int kNone = 0;
inline constexpr int kUnread = -1;
inline constexpr int kRecords = -2;

/// The number of the mutant that is on, or one of the above.
inline constinit std::atomic<int> g_chosen{kUnread};
inline constinit std::atomic<unsigned char*> g_reached{nullptr};
inline constinit std::atomic<int> g_room{0};

/// The bytes of MUTANT_REACHED, or null. System calls, not the C library's functions, which libosc may replace.
[[maybe_unused, gnu::cold]] static unsigned char* map_reached(const char* name) {
    const long file = syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0);
    if (file < 0) return nullptr;
    struct stat about = {};
    void* bytes = MAP_FAILED;
    if (fstat(static_cast<int>(file), &about) == 0 && about.st_size > 0)
        bytes = reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, static_cast<std::size_t>(about.st_size),
                                                PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(file), 0L));
    syscall(SYS_close, static_cast<int>(file));
    if (bytes == MAP_FAILED) return nullptr;
    g_room.store(static_cast<int>(about.st_size), std::memory_order_relaxed);
    return static_cast<unsigned char*>(bytes);
}

/// Reads the environment, and records the mutant if it says so. Two threads may both read it; they agree. Internal
/// linkage, so that each source has a copy for its own instruction set.
[[maybe_unused, gnu::cold, gnu::noinline]] static bool look(int mutant) {
    if (g_chosen.load(std::memory_order_acquire) == kUnread) {
        if (environ == nullptr) return false;
        const int error = errno;
        const char* const text = std::getenv("MUTANT");
        const char* const file = std::getenv("MUTANT_REACHED");
        int chosen = text != nullptr ? std::atoi(text) : kNone;
        if (file != nullptr && *file != '\0') {
            unsigned char* const bytes = map_reached(file);
            g_reached.store(bytes, std::memory_order_relaxed);
            chosen = bytes != nullptr ? kRecords : kNone;
        }
        g_chosen.store(chosen, std::memory_order_release);
        errno = error;
    }
    const int chosen = g_chosen.load(std::memory_order_acquire);
    if (chosen == kRecords && mutant < g_room.load(std::memory_order_relaxed))
        __atomic_store_n(g_reached.load(std::memory_order_relaxed) + mutant, std::uint8_t{1}, __ATOMIC_RELAXED);
    return chosen == mutant;
}

/// Whether the mutant of this number, from 1, is on. Never in a constant expression.
[[gnu::always_inline]] constexpr bool on(int mutant) {
    if (std::is_constant_evaluated()) {
        return false;
    } else {
        const int chosen = g_chosen.load(std::memory_order_relaxed);
        return chosen != kNone && (chosen == mutant || (chosen < 0 && look(mutant)));
    }
}

}  // namespace osc_mutant
