// The inline half of the handle look-up: the few instructions between an MPI_Win and its Window.
#pragma once

#include <atomic>
#include <cstddef>

#include "abi/abi.h"
#include "host/handle_table.h"
#include "shm/compare.h"
#include "window/window.h"

namespace osc {
namespace detail {

/// A cache of the handle table for the fast path, indexed by abi::window_index(). An entry belongs to the first window
/// that takes it and is empty again after that window's free. It never passes from one live window to another, so a
/// caller that finds its handle here also finds its window. An empty entry contains a handle with another index, which
/// no caller's handle matches, so a match needs no further test: 0, but 1 in the entry with the index of 0. Two arrays,
/// because one instruction can address an element of each by its index.
struct Front {
    static constexpr std::size_t kEntries = abi::kWindowPlaces;
    static_assert(abi::window_index(0) == 0 && abi::window_index(1) != 0);
    std::atomic<Window*> windows[kEntries] = {};
    std::atomic<abi::HandleKey> handles[kEntries] = {1};

    void clear(std::size_t index);
};
extern Front g_front;

}  // namespace detail

/// The window of a handle if the cache has it. Null: ask find_window().
inline Window* find_front(MPI_Win handle) {
    const detail::Front* front = &detail::g_front;
    asm("" : "+r"(front));  // one address for both arrays; the compiler would make two
    const abi::HandleKey key = abi::handle_key(handle);
    const std::size_t index = abi::window_index(key);
    // The window is read first: an entry that another thread empties meanwhile loses its handle before its window.
    Window* const window = front->windows[index].load(std::memory_order_acquire);
    if (__builtin_expect(!shm::equals(front->handles[index], key), 0)) return nullptr;
    if (window == nullptr) __builtin_unreachable();
    return window;
}

/// The window of a handle, or null if libosc does not serve it. Thread-safe, takes no lock.
Window* find_window(MPI_Win handle);

/// Whether a handle that find_window() does not know belongs to a window which libosc has freed; the host itself may
/// take it for a live one. freeing() notes a handle before the host frees it, reissued() removes the note when the host
/// has given the handle to a window again.
bool was_freed(MPI_Win handle);
void freeing(MPI_Win handle);
void reissued(MPI_Win handle);

}  // namespace osc
