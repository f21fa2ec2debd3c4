// Adoption at MPI_Win_create and MPI_Win_attach (OSC_ADOPT, info key osc_adopt): when the memory of a window becomes
// shared in place (src/shm/adoption.h does it), and what its control block or its region then says.
#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>

#include "base/open_devices.h"
#include "shm/adoption.h"
#include "shm/adoption_history.h"
#include "window/create.h"
#include "window/memory_calls.h"
#include "window/shared_heap.h"

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
    visit_windows([&](Window& window) {
        const shm::ControlBlock& block = window.mine();
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
    visit_windows([&](Window& window) { any = any || window.incomplete.load(std::memory_order_acquire) != 0; });
    return any;
}

// With adoption off, memory of libosc_heap.so is shared all the same.
shm::SharedPart adopt_range(Window& window, const void* base, std::size_t bytes, std::string& kept_private) {
    const bool off = window.adoption == "off", always = window.adoption == "always";
    if ((off && !heap_is_shared()) || window.controls.local_count(window.size) < 2) return {};
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
    shm::Adoption::mine().expect_forks_of(window.controls.local_count(window.size));
    const shm::SharedPart part = shm::Adoption::mine().adopt(base, bytes, limits, kept_private);
    if (off) kept_private.clear();
    return part;
}

}  // namespace

void adopt_memory(Window& window, const Request& request, shm::ControlBlock& block) {
    const auto bytes = static_cast<std::size_t>(request.size);
    const shm::SharedPart part = adopt_range(window, request.base, bytes, window.kept_private);
    if (!part) return;
    block.memory = part.bytes() == bytes ? shm::Memory::Shared : shm::Memory::Mixed;
    block.offset = part.offset;
    block.shared_first = part.first - reinterpret_cast<std::uintptr_t>(request.base);
    block.shared_end = block.shared_first + part.bytes();
}

Fault attach_memory(Window& window, const void* base, std::size_t bytes, shm::SharedPart& shared,
                    std::string& kept_private) {
    const auto first = reinterpret_cast<std::uintptr_t>(base);
    const std::uint64_t offset = bytes > 0 ? shm::Arena::mine().offset_of(base, bytes) : shm::kNoOffset;
    if (offset != shm::kNoOffset)
        shared = {first, first + bytes, offset};
    else if (bytes > 0)
        shared = adopt_range(window, base, bytes, kept_private);
    return window.regions->attach(base, bytes, shared);
}

}  // namespace osc
