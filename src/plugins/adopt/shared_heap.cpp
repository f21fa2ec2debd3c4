// Shared memory for the program's large allocations. It is a reserved part of adopted memory (adoption.h), so windows
// over it, fork and MADV_DONTNEED work as for arrays that were adopted later. libosc_heap.so (heap/malloc.cpp) gives it
// out.
#include "plugins/adopt/shared_heap.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/options.h"
#include "plugins/adopt/adoption.h"
#include "plugins/adopt/memory_calls.h"
#include "plugins/libosc.h"

namespace osc {
namespace {

std::uintptr_t g_first = 0;
std::size_t g_bytes = 0;  // 0: the heap is not shared

// Pieces that come back must read as zero, also where the system refuses to take their pages.
void discard(void* piece, std::size_t bytes) {
    if (!shm::Adoption::mine().discard_reserved(piece, bytes)) std::memset(piece, 0, bytes);
}

}  // namespace

void share_heap() {
    const long mib = base::values().share_heap;
    if (mib == 0 || g_bytes != 0) return;
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
    g_first = reinterpret_cast<std::uintptr_t>(memory);
    g_bytes = bytes;
    watch_memory_calls();
}

bool heap_is_shared() {
    return g_bytes != 0;
}

bool in_shared_heap(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) - g_first < g_bytes;
}

}  // namespace osc
