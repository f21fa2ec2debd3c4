// What libosc.so calls of the plugin (window/adopter.h), and when the memory of a window becomes shared in place;
// adoption.h does it.
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>

#include "base/open_devices.h"
#include "plugins/adopt/adoption.h"
#include "plugins/adopt/history.h"
#include "plugins/adopt/memory_calls.h"
#include "plugins/adopt/shared_heap.h"
#include "plugins/libosc.h"
#include "window/adopter.h"

namespace osc {
namespace {

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
    if (off && !heap_is_shared()) return {};
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
}  // namespace osc

extern "C" __attribute__((visibility("default"))) const osc::Adopter* osc_adopt_open(const osc::plugin::Table* libosc) {
    if (!osc::plugin::take(libosc)) return nullptr;
    osc::shm::Adoption::mine();  // not first in a fork handler, which could not make it
    return &osc::kAdopter;
}
