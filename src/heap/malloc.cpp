// libosc_heap.so: malloc and its family, preloaded beside libosc.so (OSC_SHARE_HEAP). Large allocations come from
// memory that libosc has made shared beforehand, so that MPI_Win_create over them copies nothing; all others, and all
// before libosc is loaded, are the C library's.
//
// A library of its own, because a program may allocate in one library and free in another, and the C library itself
// frees and reallocates memory of its callers: only a library that defines these names sees all calls.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/pages.h"
#include "heap/shared_heap.h"

// The C library's own, under the names that it keeps for this.
extern "C" {
void* __libc_malloc(std::size_t bytes);                           // NOLINT(bugprone-reserved-identifier)
void __libc_free(void* piece);                                    // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* piece, std::size_t bytes);             // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)
}

namespace {

using osc::heap::SharedHeap;

// What the C library gives a mapping of its own, within a factor of two.
constexpr std::size_t kLarge = std::size_t{64} << 10;

std::atomic<SharedHeap*> g_heap{
    nullptr};  // made once, and never destroyed: programs free memory until their last instruction

void* shared(std::size_t bytes, std::size_t alignment, bool zero = false) {
    if (__builtin_expect(bytes < kLarge, 1)) return nullptr;
    SharedHeap* const heap = g_heap.load(std::memory_order_acquire);
    return heap == nullptr ? nullptr : heap->allocate(bytes, alignment, zero);
}

// The heap, if the piece is one of it.
SharedHeap* owner(const void* piece) {
    SharedHeap* const heap = g_heap.load(std::memory_order_acquire);
    return heap != nullptr && heap->contains(piece) ? heap : nullptr;
}

void* aligned(std::size_t alignment, std::size_t bytes) {
    void* const piece = shared(bytes, alignment);
    return piece != nullptr ? piece : __libc_memalign(alignment, bytes);
}

bool is_power_of_two(std::size_t number) {
    return number != 0 && (number & (number - 1)) == 0;
}

}  // namespace

// This library's own, for its bookkeeping, which it changes while it holds its mutex: the program's operator new may
// call malloc, or hold a lock while it does. The version script keeps them inside the library.
void* operator new(std::size_t bytes) {
    if (void* const piece = __libc_malloc(bytes)) return piece;
    throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
    return __libc_malloc(bytes);
}
void operator delete(void* piece) noexcept {
    __libc_free(piece);
}
void operator delete(void* piece, std::size_t /*bytes*/) noexcept {
    __libc_free(piece);
}
void operator delete(void* piece, const std::nothrow_t& /*tag*/) noexcept {
    __libc_free(piece);
}

#define OSC_HEAP_EXPORT extern "C" __attribute__((visibility("default")))

/// Called by libosc.so once: from now on large allocations come from [base, base + bytes), whole pages that read as
/// zero, while it has room. Of freed memory it keeps at most `keep` bytes; `discard` returns the pages of the rest to
/// the system, and they read as zero then. Returns 0, or -1 with errno set.
OSC_HEAP_EXPORT int osc_heap_attach(void* base, std::size_t bytes, std::size_t keep, osc::heap::Discard discard) {
    if (g_heap.load() != nullptr) {
        errno = EALREADY;
        return -1;
    }
    auto* const heap = new (std::nothrow) SharedHeap(base, bytes, osc::base::page_bytes(), keep, discard);
    if (heap == nullptr) return -1;
    const int error = ::pthread_atfork([] { g_heap.load()->before_fork(); }, [] { g_heap.load()->after_fork(); },
                                       [] { g_heap.load()->after_fork(); });
    if (error != 0) {
        delete heap;
        errno = error;
        return -1;
    }
    g_heap.store(heap, std::memory_order_release);
    return 0;
}

OSC_HEAP_EXPORT std::size_t malloc_usable_size(void* piece) {
    if (const SharedHeap* const heap = owner(piece)) return heap->length(piece);
    using Function = std::size_t (*)(void*);
    static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "malloc_usable_size"));
    return next(piece);
}

OSC_HEAP_EXPORT void* malloc(std::size_t bytes) {
    void* const piece = shared(bytes, 1);
    return piece != nullptr ? piece : __libc_malloc(bytes);
}

OSC_HEAP_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
    std::size_t all = 0;
    if (!__builtin_mul_overflow(count, bytes, &all))
        if (void* const piece = shared(all, 1, true)) return piece;
    return __libc_calloc(count, bytes);
}

OSC_HEAP_EXPORT void free(void* piece) {
    if (SharedHeap* const heap = owner(piece)) {
        const int error = errno;
        heap->release(piece);
        errno = error;
    } else
        __libc_free(piece);
}

OSC_HEAP_EXPORT void* realloc(void* piece, std::size_t bytes) {
    if (piece == nullptr) return malloc(bytes);
    SharedHeap* const heap = owner(piece);
    void* other = nullptr;
    if (heap == nullptr) {
        // A piece that becomes large moves to the shared memory.
        other = shared(bytes, 1);
        if (other == nullptr) return __libc_realloc(piece, bytes);
    } else if (bytes == 0) {
        free(piece);
        return nullptr;
    } else {
        if (bytes >= kLarge && heap->resize(piece, bytes)) return piece;
        other = malloc(bytes);
        if (other == nullptr) return nullptr;
    }
    const std::size_t before = malloc_usable_size(piece);
    std::memcpy(other, piece, before < bytes ? before : bytes);
    free(piece);
    return other;
}

OSC_HEAP_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
    return is_power_of_two(alignment) ? aligned(alignment, bytes) : __libc_memalign(alignment, bytes);
}

OSC_HEAP_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return memalign(alignment, bytes);
}

OSC_HEAP_EXPORT int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
    if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    const int error = errno;
    void* const piece = aligned(alignment, bytes);
    errno = error;
    if (piece == nullptr) return ENOMEM;
    *result = piece;
    return 0;
}

OSC_HEAP_EXPORT void* valloc(std::size_t bytes) {
    return aligned(osc::base::page_bytes(), bytes);
}

OSC_HEAP_EXPORT void* pvalloc(std::size_t bytes) {
    const std::size_t page = osc::base::page_bytes();
    std::size_t up = 0;
    if (__builtin_add_overflow(bytes, page - 1, &up)) {
        errno = ENOMEM;
        return nullptr;
    }
    return aligned(page, up / page * page);
}
