// Handle -> Window*: an open-addressing table that readers search without a lock. A removed entry leaves a mark so that
// searches go on past it; marks are reused. When the table fills up, a larger one replaces it and the old one is kept
// for readers that may still be in it (it is small, and growth is rare).
#include "window/registry.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace osc {

namespace detail {
std::atomic<HandleTable*> g_windows{nullptr};
Front g_front;
}  // namespace detail

namespace {

using detail::g_windows;

std::mutex g_mutex;
std::size_t g_live = 0;

HandleTable* make_table(unsigned bits) {
    auto* table = new HandleTable;
    table->shift = 64 - bits;
    table->mask = (std::size_t{1} << bits) - 1;
    table->entries = new HandleTable::Entry[table->mask + 1];
    return table;
}

void insert(HandleTable& table, MPI_Win handle, Window* window) {
    for (std::size_t i = table.slot(handle);; i = (i + 1) & table.mask) {
        HandleTable::Entry& entry = table.entries[i];
        if (entry.window.load(std::memory_order_relaxed) != nullptr) continue;
        entry.handle.store(handle, std::memory_order_relaxed);
        entry.window.store(window, std::memory_order_release);
        return;
    }
}

}  // namespace

Window* find_window(MPI_Win handle) {
    if (Window* window = find_front(handle)) return window;
    const HandleTable* table = g_windows.load(std::memory_order_acquire);
    if (table == nullptr) return nullptr;
    const std::size_t home = table->slot(handle);
    for (std::size_t n = 0; n <= table->mask; ++n) {
        const HandleTable::Entry& entry = table->entries[(home + n) & table->mask];
        const MPI_Win key = entry.handle.load(std::memory_order_relaxed);
        if (key == handle) {
            if (Window* window = entry.window.load(std::memory_order_acquire)) return window;
        } else if (key == MPI_WIN_NULL) {
            return nullptr;
        }
    }
    return nullptr;
}

void register_window(MPI_Win handle, Window* window) {
    const std::lock_guard lock(g_mutex);
    HandleTable* table = g_windows.load(std::memory_order_relaxed);
    if (table == nullptr || (g_live + 1) * 2 > table->mask) {
        HandleTable* larger = make_table(table == nullptr ? 10 : 65 - table->shift);
        if (table != nullptr)
            for (std::size_t i = 0; i <= table->mask; ++i)
                if (Window* live = table->entries[i].window.load(std::memory_order_relaxed); live != nullptr)
                    insert(*larger, table->entries[i].handle.load(std::memory_order_relaxed), live);
        g_windows.store(larger, std::memory_order_release);
        table = larger;
    }
    insert(*table, handle, window);
    ++g_live;
    detail::FrontEntry& front = detail::g_front.entries[detail::front_place(handle)];
    if (front.window.load(std::memory_order_relaxed) != nullptr) return;
    front.window.store(window, std::memory_order_relaxed);
    front.handle.store(handle, std::memory_order_release);
}

void unregister_window(MPI_Win handle, const Window* window) {
    const std::lock_guard lock(g_mutex);
    HandleTable* table = g_windows.load(std::memory_order_relaxed);
    if (table == nullptr) return;
    for (std::size_t i = table->slot(handle), seen = 0; seen <= table->mask; i = (i + 1) & table->mask, ++seen) {
        HandleTable::Entry& entry = table->entries[i];
        if (entry.handle.load(std::memory_order_relaxed) != handle) continue;
        if (entry.window.load(std::memory_order_relaxed) != window) continue;
        entry.window.store(nullptr, std::memory_order_release);
        const std::size_t place = detail::front_place(handle);
        if (detail::g_front.entries[place].window.load(std::memory_order_relaxed) == window)
            detail::g_front.clear(place);
        --g_live;
        return;
    }
}

std::vector<Window*> live_windows() {
    const std::lock_guard lock(g_mutex);
    std::vector<Window*> all;
    if (HandleTable* table = g_windows.load(std::memory_order_relaxed); table != nullptr)
        for (std::size_t i = 0; i <= table->mask; ++i)
            if (Window* window = table->entries[i].window.load(std::memory_order_relaxed); window != nullptr)
                all.push_back(window);
    return all;
}

}  // namespace osc
