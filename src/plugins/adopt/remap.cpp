// mremap() of adopted memory.
//
// The system would move a shared mapping as it is, and would refuse to move a range of which only a part is adopted. So
// memory that moves or grows becomes private again: a fresh mapping with the same content and protection.
// Build: osc_adopt_core
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/pages.h"
#include "plugins/adopt/adoption.h"
#include "shm/vm_areas.h"

namespace osc::shm {
namespace {

bool overlap(std::uintptr_t a, std::size_t a_bytes, std::uintptr_t b, std::size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

void* refuse(int error) {
    errno = error;
    return MAP_FAILED;
}

}  // namespace

// Copies what is mapped in [first, first + bytes) to `to`, which can be written, and gives each part its protection.
// False with errno set if a part is not mapped or cannot be read.
bool Adoption::copy_areas(std::uintptr_t first, std::size_t bytes, std::uintptr_t to, int& last_protection) const {
    std::uintptr_t at = first;
    VmAreas areas;
    for (VmArea area; at < first + bytes && areas.next(area);) {
        if (area.end <= at) continue;
        if (area.first > at) break;
        const std::size_t part = std::min(area.end, first + bytes) - at;
        auto* const target = reinterpret_cast<void*>(to + (at - first));
        auto* const source = reinterpret_cast<void*>(at);
        last_protection = protection_of(area);
        if (is_own(area)) {
            if (!copy_out(area.offset + (at - area.first), part, target)) return false;
        } else {
            if (!area.readable && ::mprotect(source, part, PROT_READ) != 0) return false;
            std::memcpy(target, source, part);
            if (!area.readable) ::mprotect(source, part, last_protection);
        }
        if (last_protection != (PROT_READ | PROT_WRITE) && ::mprotect(target, part, last_protection) != 0) return false;
        at += part;
    }
    if (at < first + bytes) errno = EFAULT;
    return at >= first + bytes;
}

void* Adoption::move_away(std::uintptr_t first, std::size_t bytes, std::size_t new_bytes, int flags, void* wanted) {
    const bool fixed = (flags & MREMAP_FIXED) != 0;
    const auto target = reinterpret_cast<std::uintptr_t>(wanted);
    if (fixed && (target % base::page_bytes() != 0 || overlap(first, bytes, target, new_bytes))) return refuse(EINVAL);
    void* const fresh = ::mmap(fixed ? wanted : nullptr, new_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0), -1, 0);
    if (fresh == MAP_FAILED) return fresh;
    const std::size_t kept = std::min(bytes, new_bytes);
    int protection = PROT_NONE;
    const bool copied = copy_areas(first, kept, reinterpret_cast<std::uintptr_t>(fresh), protection);
    if (!copied) {
        const int error = errno;
        ::munmap(fresh, new_bytes);
        return refuse(error);
    }
    if (new_bytes > kept && protection != (PROT_READ | PROT_WRITE))
        ::mprotect(static_cast<std::byte*>(fresh) + kept, new_bytes - kept, protection);
    auto* const old = reinterpret_cast<void*>(first);
    if ((flags & MREMAP_DONTUNMAP) == 0)
        ::munmap(old, bytes);
    else
        static_cast<void>(::mmap(old, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    return fresh;
}

void* Adoption::remap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, void* wanted) {
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const std::size_t before = base::page_up(bytes);
    const std::size_t after = base::page_up(new_bytes);
    const bool may_move = (flags & MREMAP_MAYMOVE) != 0;
    const bool must_move = (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0;
    if (first % base::page_bytes() != 0 || before == 0 || after == 0 || (must_move && !may_move) ||
        (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 ||
        ((flags & MREMAP_DONTUNMAP) != 0 && before != after))
        return refuse(EINVAL);
    if (after > before && !may_move) return refuse(ENOMEM);
    const Undisturbed undisturbed;
    void* result = address;
    if (after > before || must_move)
        result = move_away(first, before, after, flags, wanted);
    else if (before > after && ::munmap(reinterpret_cast<void*>(first + after), before - after) != 0)
        result = MAP_FAILED;
    const int error = errno;
    sweep();
    errno = error;
    return result;
}

}  // namespace osc::shm
