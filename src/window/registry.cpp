// Handle -> Window*: a table of all live windows, and a cache in front of it.
// Build: osc
#include "window/registry.h"

#include <mutex>
#include <unordered_set>

namespace osc {

namespace detail {

constinit Front g_front;

void Front::clear(std::size_t index) {
    handles[index].store(index == 0 ? 1 : 0, std::memory_order_relaxed);
    windows[index].store(nullptr, std::memory_order_release);
}

}  // namespace detail

namespace {

using detail::Front;
using detail::g_front;

constinit host::HandleTable<Window> g_windows;
std::mutex g_front_mutex;  // taken by writers

// Handles of freed windows: at most as many as the host has, about 2,000.
struct Freed {
    std::mutex mutex;
    std::unordered_set<MPI_Win> handles;
};

// Made when it is used first, and never destroyed: a program may call MPI before constructors and after destructors.
Freed& freed() {
    static auto* const made = new Freed;
    return *made;
}

}  // namespace

Window* find_window(MPI_Win handle) {
    if (Window* window = find_front(handle)) return window;
    return g_windows.find(abi::handle_key(handle));
}

void register_window(MPI_Win handle, Window* window) {
    reissued(handle);
    g_windows.insert(abi::handle_key(handle), window);
    if (!window->core.allows_fast_paths()) return;
    const std::lock_guard lock(g_front_mutex);
    const std::size_t index = abi::window_index(abi::handle_key(handle));
    if (g_front.windows[index].load(std::memory_order_relaxed) != nullptr) return;
    g_front.windows[index].store(window, std::memory_order_relaxed);
    g_front.handles[index].store(abi::handle_key(handle), std::memory_order_release);
}

void unregister_window(MPI_Win handle) {
    Window* const window = g_windows.erase(abi::handle_key(handle));
    const std::lock_guard lock(g_front_mutex);
    const std::size_t index = abi::window_index(abi::handle_key(handle));
    if (window != nullptr && g_front.windows[index].load(std::memory_order_relaxed) == window) g_front.clear(index);
}

bool was_freed(MPI_Win handle) {
    const std::lock_guard lock(freed().mutex);
    return freed().handles.contains(handle);
}

void freeing(MPI_Win handle) {
    const std::lock_guard lock(freed().mutex);
    freed().handles.insert(handle);
}

void reissued(MPI_Win handle) {
    const std::lock_guard lock(freed().mutex);
    freed().handles.erase(handle);
}

void visit_windows(base::FunctionRef<void(Window&)> visit) {
    g_windows.for_each([&](std::uint64_t, Window& window) { visit(window); });
}

std::vector<Window*> live_windows() {
    std::vector<Window*> all;
    visit_windows([&](Window& window) { all.push_back(&window); });
    return all;
}

}  // namespace osc
