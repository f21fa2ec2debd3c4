// What happens to adopted memory after its adoption: the program unmaps, frees, discards or moves it. And memory that
// is shared from the start, because a heap reserves it.
// Build: osc_adopt_core
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/pages.h"
#include "plugins/adopt/adoption.h"
#include "shm/vm_areas.h"

namespace osc::shm {
namespace {

bool overlap(std::uintptr_t a, std::size_t a_bytes, std::uintptr_t b, std::size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

void* refuse(int error, void* result = MAP_FAILED) {
    errno = error;
    return result;
}

}  // namespace

void Adoption::lock() {
    mutex_.lock();
    s_inside = true;
}

void Adoption::unlock() {
    s_inside = false;
    mutex_.unlock();
    sweep_if_due();
}

bool Adoption::drop_pages(std::uint64_t offset, std::size_t bytes) {
    return ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(bytes)) == 0;
}

void Adoption::drop_gap(std::uint64_t from, std::uint64_t to) {
    if (from >= to) return;
    const off_t data = ::lseek(fd_, static_cast<off_t>(from), SEEK_DATA);
    if (data >= 0 && static_cast<std::uint64_t>(data) < to)
        drop_pages(static_cast<std::uint64_t>(data), to - static_cast<std::uint64_t>(data));
}

void Adoption::update_hull() {
    known_.publish(places_.begin(), places_.size(), kAddresses);
    const bool none = places_.empty();
    s_hull_first.store(none ? ~std::uintptr_t{0} : places_.begin()->first, std::memory_order_relaxed);
    s_hull_end.store(none ? 0 : places_.back().end, std::memory_order_relaxed);
}

bool Adoption::is_adopted(const void* address, std::size_t bytes) const {
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    return owned() && known_.meets(first, first + bytes);
}

// Keeps the pages at those offsets that a mapping of this process uses. Mappings count, not what was adopted: mremap()
// may have moved a mapping, or added pages to it. Without the whole list of mappings nothing is dropped, and any memory
// counts as adopted.
bool Adoption::sweep_locked() {
    if (!owned()) return false;
    used_.clear();
    places_.clear();
    bool stored = true;
    VmAreas areas;
    for (VmArea area; areas.next(area);) {
        if (!is_own(area)) continue;
        stored = stored && used_.push({area.offset, area.offset + (area.end - area.first)});
        if (!places_.empty() && places_.back().end == area.first)
            places_.back().end = area.end;
        else
            stored = stored && places_.push({area.first, area.end});
    }
    const bool known = stored && areas.complete();
    if (!known) {
        places_.clear();
        places_.push({0, kAddresses});
    }
    update_hull();
    if (!known) return false;
    std::sort(used_.begin(), used_.end(), [](const Offsets& a, const Offsets& b) { return a.first < b.first; });
    std::uint64_t at = kAdoptedOffset;
    for (const Offsets& offsets : used_) {
        drop_gap(at, offsets.first);
        at = std::max(at, offsets.end);
    }
    drop_gap(at, kAdoptedEnd);
    return true;
}

void Adoption::sweep() {
    const Undisturbed undisturbed;
    sweep_due_.exchange(1);
    sweep_if_due();
}

// The mark is set before the mutex is tried, and looked at after it was unlocked, both by read-modify-write operations,
// which have one order: one of the two threads sweeps.
void Adoption::sweep_if_due() {
    for (;;) {
        if (sweep_due_.fetch_add(0) == 0 || s_inside || !mutex_.try_lock()) return;
        s_inside = true;
        if (sweep_due_.exchange(0) != 0) sweep_locked();
        s_inside = false;
        mutex_.unlock();
    }
}

SharedPart Adoption::first_own(std::uintptr_t first, std::uintptr_t end) const {
    VmAreas areas;
    for (VmArea area; owned() && areas.next(area) && area.first < end;)
        if (is_own(area) && area.end > first) {
            const std::uintptr_t from = std::max(area.first, first);
            return {from, std::min(area.end, end), area.offset + (from - area.first)};
        }
    return {};
}

// By the C library's mmap, which a registration cache may have patched. One pass: what follows an area in the list does
// not change with it.
void Adoption::release(const void* address, std::size_t bytes) {
    const Undisturbed undisturbed;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t first = base::page_up(begin);
    const std::uintptr_t end = base::page_down(begin + bytes);
    bool any = false;
    VmAreas areas;
    for (VmArea area; owned() && areas.next(area) && area.first < end;) {
        if (!is_own(area) || area.end <= first) continue;
        const std::uintptr_t from = std::max(area.first, first);
        any = ::mmap(reinterpret_cast<void*>(from), std::min(area.end, end) - from, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED ||
              any;
    }
    if (any) sweep();
}

SharedPart Adoption::discard(const void* address, std::size_t bytes) {
    const Undisturbed undisturbed;
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const SharedPart part = first_own(first, first + bytes);
    if (part) drop_pages(part.offset, part.bytes());
    return part;
}

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

// The system would move a shared mapping as it is, and would refuse to move a range of
// which only a part is adopted. So memory that moves or grows becomes private again: a fresh mapping with the same
// content and protection.
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

// Reserved memory: shared memory at addresses that the kernel chooses, for a heap whose pieces need no exchange.
//
// All reserved memory has one slot, in which no two mappings meet, unless the program has moved one with mremap(). No
// step waits for the arena's mutex once the file is open: the arena may call malloc, and malloc this function, while it
// has its mutex.
void* Adoption::reserve(std::size_t bytes) {
    if (bytes == 0 || bytes > kAddresses) return refuse(bytes == 0 ? EINVAL : ENOMEM, nullptr);
    if (arena_.allocates_early()) return refuse(ENOTSUP, nullptr);
    if (s_inside) return refuse(EAGAIN, nullptr);
    int fd = -1;
    {
        const Inside inside(*this);
        fd = fd_;
    }
    if (fd < 0) fd = arena_.adoption_file(bytes);
    if (fd < 0) return nullptr;
    const Inside inside(*this);
    if (const Refusal refusal = open_file(fd)) return refuse(refusal.error != 0 ? refusal.error : ENOTSUP, nullptr);
    if (!sweep_locked()) return refuse(ENOMEM, nullptr);
    const std::size_t length = base::page_up(bytes);
    const long place =
        ::syscall(SYS_mmap, nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    if (place == -1) return nullptr;
    const auto first = static_cast<std::uint64_t>(place);
    if (reserved_shift_ == kNoOffset || !is_free(reserved_shift_ + first, reserved_shift_ + first + length))
        reserved_shift_ = free_slot();
    if (first + length > kAddresses || reserved_shift_ == kNoOffset) {
        ::syscall(SYS_munmap, place, length);
        return refuse(ENOMEM, nullptr);
    }
    if (::syscall(SYS_mmap, place, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                  static_cast<off_t>(reserved_shift_ + first)) == -1) {
        const int error = errno;
        ::syscall(SYS_munmap, place, length);
        return refuse(error, nullptr);
    }
    ::syscall(SYS_madvise, place, length, MADV_DONTDUMP);  // the heap shows what it uses
    sweep_locked();
    return reinterpret_cast<void*>(place);
}

// A forked child has copies, some perhaps of the parent's file, if memory was short.
bool Adoption::discard_reserved(void* address, std::size_t bytes) {
    if (s_inside) {
        errno = EAGAIN;
        return false;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = first + bytes;
    const Undisturbed undisturbed;
    if (!owned())
        return ::syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L) != -1;
    bool good = true;
    if (SharedPart part; is_whole(first, end, part)) return drop_pages(part.offset, part.bytes());
    for (SharedPart part = first_own(first, end); part; part = first_own(part.end, end))
        good = drop_pages(part.offset, part.bytes()) && good;
    return good;
}

}  // namespace osc::shm
