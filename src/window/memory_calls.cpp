// free, munmap and madvise, as the program calls them once it has adopted memory. The pages of adopted memory belong to
// a file, so the system does not free them with the mapping, and MADV_DONTNEED would keep their contents.
//
// The calls are redirected where they are made (host/imports.h). If libosc exported these names, a library that patches
// the code of the C library's functions, as UCX does, would patch libosc's instead and not see the C library's own
// calls.
#include "window/memory_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "host/imports.h"
#include "transport/shm/adoption.h"

namespace osc {
namespace {

using shm::Adoption;

// What the calls reached before; found before the first redirection.
void (*g_free)(void*) = nullptr;
int (*g_munmap)(void*, std::size_t) = nullptr;
int (*g_madvise)(void*, std::size_t, int) = nullptr;
std::atomic<std::byte*> g_heap_end{nullptr};  // at the last free

// Whether the C library will unmap the piece instead of keeping it. Its header lies before it.
__attribute__((no_sanitize("address"))) bool has_own_mapping(const void* piece) {
    constexpr std::uintptr_t kHeader = 2 * sizeof(std::size_t);
    static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    return reinterpret_cast<std::uintptr_t>(piece) % kPage == kHeader &&
           (static_cast<const std::size_t*>(piece)[-1] & 2) != 0;
}

void sweep() {
    const int error = errno;
    Adoption::mine().sweep();
    errno = error;
}

// The C library unmaps a large piece, or gives back the end of its heap.
void watched_free(void* piece) {
    bool unmaps = Adoption::meets(piece, 1) && has_own_mapping(piece);
    g_free(piece);
    auto* const heap_end = static_cast<std::byte*>(::sbrk(0));
    std::byte* const before = g_heap_end.load(std::memory_order_relaxed);
    if (__builtin_expect(heap_end != before, 0)) {
        g_heap_end.store(heap_end, std::memory_order_relaxed);
        unmaps =
            unmaps || (heap_end < before && Adoption::meets(heap_end, static_cast<std::size_t>(before - heap_end)));
    }
    if (__builtin_expect(unmaps, 0)) sweep();
}

int watched_munmap(void* address, std::size_t bytes) {
    const bool adopted = Adoption::meets(address, bytes);
    const int result = g_munmap(address, bytes);
    if (__builtin_expect(adopted && result == 0, 0)) sweep();
    return result;
}

int watched_madvise(void* address, std::size_t bytes, int advice) {
    const bool discards = advice == MADV_DONTNEED || advice == MADV_FREE;
    if (__builtin_expect(!discards || !Adoption::meets(address, bytes), 1)) return g_madvise(address, bytes, advice);
    return Adoption::mine().zero(address, bytes,
                                 [advice](void* part, std::size_t length) { return g_madvise(part, length, advice); });
}

template <class Function>
void watch(const char* name, Function by, Function& before) {
    if (before == nullptr) before = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
    if (before != nullptr) host::replace_all_imports(name, reinterpret_cast<void*>(by));
}

unsigned long long libraries_loaded() {
    unsigned long long loads = 0;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* result) {
            *static_cast<unsigned long long*>(result) = info->dlpi_adds;
            return 1;
        },
        &loads);
    return loads;
}

}  // namespace

void watch_memory_calls() {
    static unsigned long long seen = 0;
    const unsigned long long loads = libraries_loaded();
    if (loads == seen) return;
    seen = loads;
    watch("free", &watched_free, g_free);
    watch("munmap", &watched_munmap, g_munmap);
    watch("madvise", &watched_madvise, g_madvise);
}

}  // namespace osc
