// What libosc.so calls of the plugin (window/adopter.h): when the memory of a window becomes shared in place, which
// adoption.h does, and the shared heap.
#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "base/descriptor.h"
#include "base/options.h"
#include "plugins/adopt/adoption.h"
#include "plugins/adopt/history.h"
#include "plugins/adopt/memory_calls.h"
#include "plugins/libosc.h"
#include "window/adopter.h"

namespace osc {
namespace {

// OSC_SHARE_HEAP: shared memory for the program's large allocations. It is a reserved part of adopted memory
// (adoption.h), so windows over it, fork and MADV_DONTNEED work as for arrays that were adopted later. libosc_heap.so
// (heap/malloc.cpp) gives it out.
std::uintptr_t g_heap = 0;
std::size_t g_heap_bytes = 0;  // 0: the heap is not shared

// Pieces that come back must read as zero, also where the system refuses to take their pages.
void discard(void* piece, std::size_t bytes) {
    if (!shm::Adoption::mine().discard_reserved(piece, bytes)) std::memset(piece, 0, bytes);
}

// See Adopter.
void share_heap() {
    const long mib = base::values().share_heap;
    if (mib == 0 || g_heap_bytes != 0) return;
    using Attach = int (*)(void*, std::size_t, std::size_t, void (*)(void*, std::size_t));
    const auto attach = reinterpret_cast<Attach>(::dlsym(RTLD_DEFAULT, "osc_heap_attach"));
    if (attach == nullptr) {
        plugin::g_libosc.warn_for_job(
            "OSC_SHARE_HEAP=%ld: libosc_heap.so is not loaded, so nothing is shared; preload it too, by "
            "LD_PRELOAD=libosc.so:libosc_heap.so",
            mib);
        return;
    }
    const std::size_t bytes = static_cast<std::size_t>(mib) << 20;
    const std::size_t keep = static_cast<std::size_t>(base::values().reuse_mib) << 20;
    void* const memory = shm::Adoption::mine().reserve(bytes);
    if (memory == nullptr || attach(memory, bytes, keep, discard) != 0) {
        plugin::g_libosc.warn_for_job("OSC_SHARE_HEAP=%ld: nothing is shared: %s", mib, std::strerror(errno));
        return;
    }
    g_heap = reinterpret_cast<std::uintptr_t>(memory);
    g_heap_bytes = bytes;
    watch_memory_calls();
}

// A smaller window is created in the time of some hundred operations by process_vm_*.
constexpr std::size_t kWorthwhile = std::size_t{64} << 10;
constexpr std::size_t kNever = ~std::size_t{0};

bool meet(std::uintptr_t first, std::uintptr_t end, std::uint64_t base, std::uint64_t bytes) {
    return base < end && first < base + bytes;
}

// Whether a live window of this process exposes private memory in [first, end). Processes write there with
// process_vm_writev at any time, and an exchange of the pages would lose that.
bool is_exposed(std::uintptr_t first, std::uintptr_t end) {
    bool exposed = false;
    plugin::g_libosc.visit_windows([&](Window& window) {
        const shm::ControlBlock& block = window.core.mine();
        if (block.memory == shm::Memory::Private || block.memory == shm::Memory::Mixed)
            exposed = exposed || meet(first, end, block.base, block.size);
        if (window.regions != nullptr)
            window.regions->while_attached([&](const std::vector<shm::Region>& regions) {
                exposed = exposed || std::any_of(regions.begin(), regions.end(), [&](const shm::Region& region) {
                              return !region.is_whole() && meet(first, end, region.base, region.size);
                          });
            });
    });
    return exposed;
}

// Of this process, as its threads create windows.
bool pays(std::uintptr_t first, std::uintptr_t end) {
    static std::mutex mutex;
    static shm::AdoptionHistory history;
    const std::lock_guard lock(mutex);
    return history.pays(first, end);
}

// Results of this process's operations may arrive in any memory meanwhile: another thread of libosc stores them, or the
// network.
bool operations_in_flight() {
    bool any = false;
    plugin::g_libosc.visit_windows(
        [&](Window& window) { any = any || window.core.incomplete.load(std::memory_order_acquire) != 0; });
    return any;
}

// With adoption off, memory of libosc_heap.so is shared all the same.
shm::SharedPart adopt(Window& window, const void* base, std::size_t bytes, std::string& kept_private) {
    const bool off = window.adoption == "off", always = window.adoption == "always";
    if (off && g_heap_bytes == 0) return {};
    shm::Adoption::Limits limits;
    limits.least = off ? kNever : always ? 1 : kWorthwhile;
    limits.forbids = [always]() -> const char* {
        if (operations_in_flight()) return "operations of the process are in flight";
        if (!always && base::has_open_device()) return "the process has opened a device, which may access its memory";
        return nullptr;
    };
    limits.edges = in_shared_heap(base);
    limits.alone = !always;
    limits.in_use = is_exposed;
    if (!always) limits.pays = pays;
    watch_memory_calls();
    shm::Adoption::mine().expect_forks_of(window.core.controls.local_count(window.core.size));
    const shm::SharedPart part = shm::Adoption::mine().adopt(base, bytes, limits, kept_private);
    if (off) kept_private.clear();
    return part;
}

constexpr Adopter kAdopter = {
    .adopt = adopt,
    .share_heap = share_heap,
    .before_fork = shm::Adoption::before_fork,
    .after_fork_in_parent = shm::Adoption::after_fork_in_parent,
    .after_fork_in_child = shm::Adoption::after_fork_in_child,
};

}  // namespace

bool in_shared_heap(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) - g_heap < g_heap_bytes;
}

// The names under which the code of adoption calls libosc.so, beside those of all plugins.
namespace shm {
Arena& Arena::mine() {
    return plugin::g_libosc.arena();
}
int Arena::adoption_file(std::size_t bytes) {
    return (this->*plugin::g_libosc.adoption_file)(bytes);
}
bool Arena::has_for_each(std::uint64_t processes, std::uint64_t bytes) {
    return (this->*plugin::g_libosc.has_for_each)(processes, bytes);
}
bool has_other_threads() {
    return plugin::g_libosc.has_other_threads();
}
void stop_handlers(StoppedHandlers& state) {
    plugin::g_libosc.stop_handlers(state);
}
void release_handlers(StoppedHandlers& state) {
    plugin::g_libosc.release_handlers(state);
}
}  // namespace shm

}  // namespace osc

extern "C" __attribute__((visibility("default"))) const osc::Adopter* osc_adopt_open(const osc::plugin::Table* libosc) {
    if (!osc::plugin::take(libosc)) return nullptr;
    osc::shm::Adoption::mine();  // not first in a fork handler, which could not make it
    return &osc::kAdopter;
}
