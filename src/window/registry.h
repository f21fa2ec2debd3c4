// The inline half of the handle table: the few instructions between an MPI_Win and its Window.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/compare.h"
#include "window/window.h"

namespace osc {

/// Entries keep their handle when their window goes, as a mark: MPI_WIN_NULL means never used.
struct HandleTable {
    struct Entry {
        std::atomic<MPI_Win> handle{MPI_WIN_NULL};
        std::atomic<Window*> window{nullptr};
    };
    unsigned shift = 0;
    std::size_t mask = 0;
    Entry* entries = nullptr;

    std::size_t slot(MPI_Win handle) const {
        return static_cast<std::size_t>((static_cast<std::uint64_t>(handle) * 0x9e3779b97f4a7c15u) >> shift);
    }
};

namespace detail {

extern std::atomic<HandleTable*> g_windows;

/// In front of the table, by the low bits of the handle: what the fast path looks at. A place belongs to the first
/// window that comes and is empty again when that window goes; it never passes from one live window to another, so a
/// caller that finds its handle here also finds its window. An empty place holds a handle that belongs elsewhere, so
/// that no caller's handle ever matches it and a match needs no further test.
struct FrontEntry {
    std::atomic<MPI_Win> handle;
    std::atomic<Window*> window;
};
inline constexpr std::size_t kFront = 256;

struct Front {
    Front() {
        for (std::size_t i = 0; i < kFront; ++i)
            clear(i);
    }
    void clear(std::size_t place) {
        entries[place].handle.store((MPI_Win)((place + 1) % kFront), std::memory_order_relaxed);
        entries[place].window.store(nullptr, std::memory_order_relaxed);
    }
    FrontEntry entries[kFront];
};
extern Front g_front;

inline std::size_t front_place(MPI_Win handle) {
    return static_cast<std::size_t>(handle) % kFront;
}

}  // namespace detail

/// The window of a handle if it is in front; null says nothing.
inline Window* find_front(MPI_Win handle) {
    const detail::FrontEntry* place = &detail::g_front.entries[detail::front_place(handle)];
    // One address for both members; the compiler would compute it twice.
    asm("" : "+r"(place));
    const detail::FrontEntry& entry = *place;
    if (__builtin_expect(!shm::equals(entry.handle, handle), 0)) return nullptr;
    Window* const window = entry.window.load(std::memory_order_relaxed);
    if (window == nullptr) __builtin_unreachable();
    return window;
}

/// The window of a handle, or null if libosc does not serve it. Thread-safe, takes no lock.
Window* find_window(MPI_Win handle);

}  // namespace osc
