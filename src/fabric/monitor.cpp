// UCX's memory events as libfabric's memory monitor.
//
// UCX and libfabric both overwrite the first instructions of munmap, brk and other functions of the C library, and the
// library that does so later silences the earlier one: libfabric's hooks replace UCX's except in sbrk, which libfabric
// does not know. UCX's sbrk makes the system call itself, so libfabric misses a heap that shrinks, and UCX misses
// munmap. With an imported monitor libfabric installs no hooks.
//
// UCX reports a range inside munmap or sbrk, in any thread, perhaps under the C library's heap lock, and in several
// threads at once. libfabric allocates memory under the lock that a notification takes. So the callback only writes the
// range into a ring, without a lock and without an allocation. pass_on_unmapped() empties the ring before each
// registration of libosc; until then is_valid() refuses the entries of the cache that overlap a range in the ring. A
// range that finds the ring full invalidates the whole cache.
#include "fabric/monitor.h"

#include <dlfcn.h>
#include <link.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/pages.h"
#include "fabric/choose.h"

namespace osc::fabric {
namespace {

// From UCX's ucm/api/ucm.h, which need not be installed where libosc is built. Equal from UCX 1.4 to 1.20.
constexpr int kVmUnmapped = 1 << 17;  // UCM_EVENT_VM_UNMAPPED
struct Unmapped {                     // the member vm_unmapped of ucm_event_t
    void* address;
    std::size_t size;
};
using Callback = void(int type, Unmapped* event, void* argument);
using SetHandler = signed char(int events, int priority, Callback* callback, void* argument);  // an enum of one byte
using UnsetHandler = void(int events, Callback* callback, void* argument);
constexpr int kPriority = 1000;  // behind UCX's own handlers

// A place of the ring is complete when `turn` is its index + 1.
struct Place {
    std::atomic<std::uint64_t> turn{0};
    std::atomic<std::uintptr_t> from{0};
    std::atomic<std::uintptr_t> bytes{0};
};
constexpr std::uint64_t kPlaces = 1024;
constinit Place g_places[kPlaces];
constinit std::atomic<std::uint64_t> g_head{0};     // the next index to write
constinit std::atomic<std::uint64_t> g_tail{0};     // the first index that libfabric may not know
constinit std::atomic<std::uint64_t> g_lost{0};     // ranges that found the ring full
constinit std::atomic<std::uint64_t> g_dropped{0};  // of these, the ranges for which the whole cache was invalidated
constinit std::atomic<bool> g_imported{false};
constinit std::mutex g_passing;

void note(int, Unmapped* event, void*) {
    if (event->size == 0) return;
    std::uint64_t at = g_head.load(std::memory_order_relaxed);
    do {
        if (at - g_tail.load(std::memory_order_acquire) >= kPlaces) {
            g_lost.fetch_add(1);
            return;
        }
    } while (!g_head.compare_exchange_weak(at, at + 1));
    Place& place = g_places[at % kPlaces];
    place.from.store(reinterpret_cast<std::uintptr_t>(event->address), std::memory_order_relaxed);
    place.bytes.store(event->size, std::memory_order_relaxed);
    place.turn.store(at + 1, std::memory_order_release);
}

int start(fid_mem_monitor*) {
    return 0;
}
void stop(fid_mem_monitor*) {}
int subscribe(fid_mem_monitor*, const void*, std::size_t) {
    return 0;
}
void unsubscribe(fid_mem_monitor*, const void*, std::size_t) {}

// Whether libfabric may use an entry of its cache. libfabric calls it under its lock.
bool is_valid(fid_mem_monitor*, const void* address, std::size_t bytes) {
    if (g_lost.load() != g_dropped.load()) return false;
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    const std::uint64_t end = g_head.load();
    for (std::uint64_t at = g_tail.load(); at < end; ++at) {
        const Place& place = g_places[at % kPlaces];
        if (place.turn.load(std::memory_order_acquire) != at + 1) {
            if (g_tail.load() > at) continue;  // another thread has passed it on
            return false;                      // another thread is writing it
        }
        const std::uintptr_t gone = place.from.load(std::memory_order_relaxed);
        if (gone < from + bytes && from < gone + place.bytes.load(std::memory_order_relaxed)) return false;
    }
    return true;
}

constinit fi_ops_mem_monitor g_operations{sizeof(fi_ops_mem_monitor), start, stop, subscribe, unsubscribe, is_valid};
constinit fid_mem_monitor g_monitor{};  // never closed: libfabric crashes if a cache is open then

// libfabric refuses the import while a cache uses another monitor.
bool import_monitor() {
    fid* cache = nullptr;
    if (fi_open(FI_VERSION(1, 13), "mr_cache", nullptr, 0, 0, &cache, nullptr) != 0) return false;
    g_monitor.fid.fclass = FI_CLASS_MEM_MONITOR;
    g_monitor.export_ops = &g_operations;
    const int error = fi_import_fid(cache, &g_monitor.fid, 0);
    fi_close(cache);
    return error == 0;
}

// Whether UCX reports a page that is unmapped.
bool reports_unmapping() {
    const auto bytes = base::page_bytes();
    void* const page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    ::munmap(page, bytes);
    return !is_valid(nullptr, page, bytes);
}

// The path of UCX's memory library in this process; "" if it is not loaded. A wheel gives it a longer name.
struct Objects {
    char ucm[512] = "";
    unsigned long long loaded = 0;  // objects that were ever loaded
};
Objects look_at_objects(bool names) {
    Objects found;
    const auto visit = [](dl_phdr_info* object, std::size_t, void* out) {
        auto& all = *static_cast<Objects*>(out);
        all.loaded = object->dlpi_adds;
        if (const char* name = std::strstr(object->dlpi_name, "/libucm"); name != nullptr && name[7] != '_')
            std::strncpy(all.ucm, object->dlpi_name, sizeof all.ucm - 1);
        return 0;
    };
    const auto count = [](dl_phdr_info* object, std::size_t, void* out) {
        static_cast<Objects*>(out)->loaded = object->dlpi_adds;
        return 1;
    };
    ::dl_iterate_phdr(names ? static_cast<int (*)(dl_phdr_info*, std::size_t, void*)>(visit) : count, &found);
    return found;
}

constinit std::atomic<unsigned long long> g_loaded{0};  // objects, when UCX was looked for last
constinit std::atomic<bool> g_has_ucx{false};

const char* choose() {
    const Objects objects = look_at_objects(true);
    g_loaded.store(objects.loaded);
    g_has_ucx.store(objects.ucm[0] != '\0');
    if (std::getenv("FI_MR_CACHE_MONITOR") != nullptr) return "the one of FI_MR_CACHE_MONITOR";
    if (objects.ucm[0] == '\0') return "libfabric's hooks (UCX is not loaded)";
    if (FI_VERSION_LT(fi_version(), FI_VERSION(1, 14))) return "libfabric's hooks (libfabric is older than 1.14)";
    void* const ucm = ::dlopen(objects.ucm, RTLD_LAZY | RTLD_NOLOAD);
    auto* const set = ucm != nullptr ? reinterpret_cast<SetHandler*>(::dlsym(ucm, "ucm_set_event_handler")) : nullptr;
    auto* const unset =
        ucm != nullptr ? reinterpret_cast<UnsetHandler*>(::dlsym(ucm, "ucm_unset_event_handler")) : nullptr;
    if (set == nullptr || unset == nullptr || set(kVmUnmapped, kPriority, note, nullptr) != 0)
        return "libfabric's hooks (UCX gives no memory events)";
    if (reports_unmapping() && import_monitor()) {
        g_imported.store(true);
        return "UCX's memory events";
    }
    unset(kVmUnmapped, note, nullptr);
    return "libfabric's hooks (UCX's memory events do not come, or the host uses libfabric's cache)";
}

}  // namespace

const char* choose_monitor() {
    static const char* const chosen = choose();
    return chosen;
}

void pass_on_unmapped() {
    if (!g_imported.load(std::memory_order_relaxed)) return;
    if (g_head.load() == g_tail.load() && g_lost.load() == g_dropped.load()) return;
    const std::lock_guard lock(g_passing);
    const std::uint64_t lost = g_lost.load();
    if (lost != g_dropped.load()) {
        g_monitor.import_ops->notify(&g_monitor, nullptr, SIZE_MAX);
        g_dropped.store(lost);
    }
    for (std::uint64_t at = g_tail.load(); at < g_head.load(); ++at) {
        Place& place = g_places[at % kPlaces];
        if (place.turn.load(std::memory_order_acquire) != at + 1) return;  // another thread is writing it
        g_monitor.import_ops->notify(&g_monitor,
                                     reinterpret_cast<const void*>(place.from.load(std::memory_order_relaxed)),
                                     place.bytes.load(std::memory_order_relaxed));
        g_tail.store(at + 1);
    }
}

bool ucx_came_later() {
    if (g_has_ucx.load(std::memory_order_relaxed)) return false;
    if (look_at_objects(false).loaded == g_loaded.load(std::memory_order_relaxed)) return false;
    const Objects objects = look_at_objects(true);
    g_loaded.store(objects.loaded);
    return objects.ucm[0] != '\0' && !g_has_ucx.exchange(true);
}

}  // namespace osc::fabric
