// The inline half of the handle table: the few instructions between an MPI_Win and its Window.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

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
}

inline Window* find_window(MPI_Win handle) {
    const HandleTable* table = detail::g_windows.load(std::memory_order_acquire);
    if (__builtin_expect(table == nullptr, 0)) return nullptr;
    const std::size_t home = table->slot(handle);
    for (std::size_t n = 0; n <= table->mask; ++n) {
        const HandleTable::Entry& entry = table->entries[(home + n) & table->mask];
        const MPI_Win key = entry.handle.load(std::memory_order_relaxed);
        if (__builtin_expect(key == handle, 1)) {
            if (Window* window = entry.window.load(std::memory_order_acquire)) return window;
        } else if (key == MPI_WIN_NULL) {
            return nullptr;
        }
    }
    return nullptr;
}

}  // namespace osc
