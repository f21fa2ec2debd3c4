// free, realloc, munmap, mremap and madvise, as the program calls them once it has adopted memory. The pages of adopted
// memory belong to a file: the system does not free them with the mapping, MADV_DONTNEED would keep their contents, and
// mremap would keep them shared.
//
// The calls are redirected where they are made (base/imports.h). If libosc exported these names, a library that patches
// the code of the C library's functions, as UCX does, would patch libosc's instead and not see the C library's own
// calls. A call that is not redirected, because the caller keeps the function's address in its data or was loaded
// later, takes memory until the next adoption, and does no harm otherwise.
#include "plugins/adopt/memory_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "base/pages.h"
#include "plugins/adopt/adoption.h"
#include "plugins/libosc.h"

namespace osc {
namespace {

using shm::Adoption;

constexpr int kDontneedLocked = 24;  // MADV_DONTNEED_LOCKED, which older headers lack

// What the calls reached before; found before the first redirection.
void (*g_free)(void*) = nullptr;
void* (*g_malloc)(std::size_t) = nullptr;
void* (*g_realloc)(void*, std::size_t) = nullptr;
void* (*g_reallocarray)(void*, std::size_t, std::size_t) = nullptr;
std::size_t (*g_usable)(void*) = nullptr;
int (*g_munmap)(void*, std::size_t) = nullptr;
void* (*g_mremap)(void*, std::size_t, std::size_t, int, ...) = nullptr;
int (*g_madvise)(void*, std::size_t, int) = nullptr;
bool g_glibc = false;  // the C library's malloc is in use, with its headers

// Bytes of a piece that meets adopted memory; 0 for other pieces, and for those of libosc_heap.so, which handles them.
std::size_t adopted_size(void* piece) {
    if (piece == nullptr || in_shared_heap(piece)) return 0;
    const std::size_t size = g_usable(piece);
    return __builtin_expect(size < base::page_bytes() || !Adoption::meets(piece, size), 1) ? 0 : size;
}

// Whether the C library will unmap the piece. Its header lies before it.
__attribute__((no_sanitize("address"))) bool has_own_mapping(const void* piece) {
    constexpr std::size_t kOwnMapping = 2;
    return g_glibc && (static_cast<const std::size_t*>(piece)[-1] & kOwnMapping) != 0;
}

void sweep() {
    const int error = errno;
    Adoption::mine().sweep();
    errno = error;
}

// A piece that goes back to the heap becomes private before: what malloc puts there is not the window's.
void watched_free(void* piece) {
    const std::size_t size = adopted_size(piece);
    if (__builtin_expect(size == 0, 1)) return g_free(piece);
    const bool unmaps = has_own_mapping(piece);
    const int error = errno;
    if (!unmaps) Adoption::mine().release(piece, size);
    errno = error;
    g_free(piece);
    if (unmaps) sweep();
}

// An adopted piece moves by a copy, into private memory. The C library would move or grow its mapping with mremap.
void* watched_realloc(void* piece, std::size_t bytes) {
    const std::size_t size = adopted_size(piece);
    if (__builtin_expect(size == 0, 1)) return g_realloc(piece, bytes);
    if (bytes == 0) {
        Adoption::mine().release(piece, size);
        void* const result = g_realloc(piece, 0);
        sweep();
        return result;
    }
    if (bytes <= size && bytes > size / 2) return piece;
    void* const fresh = g_malloc(bytes);
    if (fresh == nullptr) return nullptr;
    std::memcpy(fresh, piece, std::min(size, bytes));
    watched_free(piece);
    return fresh;
}

void* watched_reallocarray(void* piece, std::size_t count, std::size_t width) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, width, &bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    return watched_realloc(piece, bytes);
}

int watched_munmap(void* address, std::size_t bytes) {
    const bool adopted = Adoption::meets(address, bytes);
    const int result = g_munmap(address, bytes);
    if (__builtin_expect(adopted && result == 0, 0)) sweep();
    return result;
}

void* watched_mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) {
    void* wanted = nullptr;
    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
        std::va_list more;
        va_start(more, flags);
        wanted = va_arg(more, void*);
        va_end(more);
    }
    if (__builtin_expect(Adoption::meets(address, std::max(bytes, std::size_t{1})), 0))
        return Adoption::mine().remap(address, bytes, new_bytes, flags, wanted);
    const bool covers = (flags & MREMAP_FIXED) != 0 && Adoption::meets(wanted, new_bytes);
    void* const result = g_mremap(address, bytes, new_bytes, flags, wanted);
    if (covers) sweep();
    return result;
}

// Adopted parts and others by turns. The first error counts, and the rest is done all the same, as the system does it.
int watched_madvise(void* address, std::size_t bytes, int advice) {
    const bool discards = advice == MADV_DONTNEED || advice == MADV_FREE || advice == kDontneedLocked;
    auto at = reinterpret_cast<std::uintptr_t>(address);
    if (__builtin_expect(!discards || at % base::page_bytes() != 0 || !Adoption::meets(address, bytes), 1))
        return g_madvise(address, bytes, advice);
    const std::uintptr_t end = at + base::page_up(bytes);
    int error = 0;
    while (at < end) {
        const shm::SharedPart part = Adoption::mine().discard(reinterpret_cast<void*>(at), end - at);
        const std::uintptr_t stop = part ? part.first : end;
        if (stop > at && g_madvise(reinterpret_cast<void*>(at), stop - at, advice) != 0 && error == 0) error = errno;
        at = part ? part.end : end;
    }
    if (error != 0) errno = error;
    return error == 0 ? 0 : -1;
}

template <class Function>
bool find(const char* name, Function& function) {
    if (function == nullptr) function = reinterpret_cast<Function>(plugin::g_libosc.called_function(name));
    return function != nullptr;
}

template <class Function>
void watch(const char* name, Function by, Function& before) {
    if (find(name, before)) {
        const base::Replacement one{name, reinterpret_cast<void*>(before), reinterpret_cast<void*>(by)};
        plugin::g_libosc.replace_all_imports({&one, 1});
    }
}

const void* library_of(const void* function, bool& c_library) {
    Dl_info info{};
    if (::dladdr(function, &info) == 0) return nullptr;
    c_library = std::strstr(info.dli_fname, "/libc.so") != nullptr;
    return info.dli_fbase;
}

// The functions of one malloc belong to one library; a malloc that lacks some of them is left alone.
bool find_malloc() {
    if (!find("free", g_free) || !find("malloc", g_malloc) || !find("realloc", g_realloc) ||
        !find("malloc_usable_size", g_usable))
        return false;
    const void* const library = library_of(reinterpret_cast<void*>(g_free), g_glibc);
    bool other = false;
    return library == library_of(reinterpret_cast<void*>(g_malloc), other) &&
           library == library_of(reinterpret_cast<void*>(g_realloc), other) &&
           library == library_of(reinterpret_cast<void*>(g_usable), other);
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
    static std::mutex mutex;
    static unsigned long long seen = 0;
    const std::lock_guard lock(mutex);
    const unsigned long long loads = libraries_loaded();
    if (loads == seen) return;
    seen = loads;
    static const bool kMalloc = find_malloc();
    if (kMalloc) {
        watch("free", &watched_free, g_free);
        watch("realloc", &watched_realloc, g_realloc);
        watch("reallocarray", &watched_reallocarray, g_reallocarray);
    }
    watch("munmap", &watched_munmap, g_munmap);
    watch("mremap", &watched_mremap, g_mremap);
    watch("madvise", &watched_madvise, g_madvise);
}

}  // namespace osc
