// The inline half of the handle look-up: the few instructions between an MPI_Win and its Window.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "host/handle_table.h"
#include "transport/shm/compare.h"
#include "window/window.h"

namespace osc {
namespace detail {

/// In front of the table, by the low bits of the handle: what the fast path looks at. A place belongs to the first
/// window that comes and is empty again when that window goes; it never passes from one live window to another, so a
/// caller that finds its handle here also finds its window. An empty place holds a handle that belongs elsewhere, so
/// that no caller's handle ever matches it and a match needs no further test. Two arrays, whose elements an instruction
/// can address by their index.
struct Front {
    static constexpr std::size_t kPlaces = 256;
    std::atomic<Window*> windows[kPlaces];
    std::atomic<MPI_Win> handles[kPlaces];

    Front();
    void clear(std::size_t place);
    static std::size_t place(MPI_Win handle) { return host::handle_key(handle) % kPlaces; }
};
extern Front g_front;

}  // namespace detail

/// The window of a handle if it is in front; null says nothing.
inline Window* find_front(MPI_Win handle) {
    const detail::Front* front = &detail::g_front;
    asm("" : "+r"(front));  // one address for both arrays; the compiler would make two
    const std::size_t place = detail::Front::place(handle);
    if (__builtin_expect(!shm::equals(front->handles[place], handle), 0)) return nullptr;
    Window* const window = front->windows[place].load(std::memory_order_relaxed);
    if (window == nullptr) __builtin_unreachable();
    return window;
}

/// The window of a handle, or null if libosc does not serve it. Thread-safe, takes no lock.
Window* find_window(MPI_Win handle);

/// Whether a handle that find_window does not know is that of a window which libosc has freed. The host itself may take
/// it for a live one. Told by freeing(), before the host gets the handle back, and by reissued(), when the host has
/// given it to a window again.
bool was_freed(MPI_Win handle);
void freeing(MPI_Win handle);
void reissued(MPI_Win handle);

}  // namespace osc
