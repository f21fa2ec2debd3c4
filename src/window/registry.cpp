// Handle -> Window*: a table of all live windows, and a cache in front of it.
// Build: osc
#include "window/registry.h"

#include <mutex>
#include <unordered_map>

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

// The handles of windows that libosc serves or has freed, at most as many as the host has; true: freed. So a free takes
// no memory.
struct Known {
    std::mutex mutex;
    std::unordered_map<MPI_Win, bool> freed;
};

// Made when it is used first, and never destroyed: a program may call MPI before constructors and after destructors.
Known& known() {
    static auto* const made = new Known;
    return *made;
}

}  // namespace

Window* find_window(MPI_Win handle) {
    if (Window* window = find_front(handle)) return window;
    return g_windows.find(abi::handle_key(handle));
}

void register_window(MPI_Win handle, Window* window) {
    {
        const std::lock_guard lock(known().mutex);
        known().freed[handle] = false;
    }
    // A window whose handle the host has given again was freed past libosc.
    if (g_windows.insert(abi::handle_key(handle), window) == window) return;
    unregister_window(handle);
    g_windows.insert(abi::handle_key(handle), window);
}

void serve_fast_paths(MPI_Win handle, Window* window) {
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
    const std::lock_guard lock(known().mutex);
    const auto found = known().freed.find(handle);
    return found != known().freed.end() && found->second;
}

void freeing(MPI_Win handle) {
    const std::lock_guard lock(known().mutex);
    if (const auto found = known().freed.find(handle); found != known().freed.end()) found->second = true;
}

void reissued(MPI_Win handle) {
    const std::lock_guard lock(known().mutex);
    known().freed.erase(handle);
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
