// What happens to adopted memory after its adoption: the program unmaps it, discards it, or forks.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "transport/shm/adoption.h"
#include "transport/shm/vm_areas.h"

namespace osc::shm {

bool Adoption::drop_pages(std::uint64_t offset, std::size_t bytes) {
    return ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(bytes)) == 0;
}

void Adoption::update_hull() {
    const bool none = intervals_.empty();
    s_hull_first.store(none ? ~std::uintptr_t{0} : intervals_.begin()->first, std::memory_order_relaxed);
    s_hull_end.store(none ? 0 : std::prev(intervals_.end())->second, std::memory_order_relaxed);
}

void Adoption::add(std::uintptr_t first, std::uintptr_t end) {
    const auto after = intervals_.lower_bound(first);
    if (after != intervals_.begin() && std::prev(after)->second == first)
        std::prev(after)->second = end;
    else
        intervals_.emplace(first, end);
    update_hull();
}

bool Adoption::is_adopted(std::uintptr_t first, std::uintptr_t end) const {
    if (s_inside) return false;
    const Inside inside(*this);
    return overlaps(first, end);
}

bool Adoption::overlaps(std::uintptr_t first, std::uintptr_t end) const {
    const auto after = intervals_.lower_bound(end);
    return after != intervals_.begin() && std::prev(after)->second > first;
}

// Keeps the offsets that some mapping of this process uses. mremap() may have moved a mapping, so offsets count, not
// addresses.
void Adoption::sweep_locked() {
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> used;
    VmAreas areas;
    if (!areas.readable()) return;
    for (VmArea area; areas.next(area);)
        if (is_own(area)) {
            const std::uintptr_t first = area.offset - kAdoptedOffset;
            used.emplace_back(first, first + (area.end - area.first));
        }
    std::sort(used.begin(), used.end());
    std::map<std::uintptr_t, std::uintptr_t> kept;
    for (const auto& [first, end] : intervals_) {
        std::uintptr_t at = first;
        for (const auto& [from, to] : used) {
            if (to <= at || from >= end) continue;
            if (from > at) drop_pages(kAdoptedOffset + at, from - at);
            const std::uintptr_t begin = std::max(from, at);
            at = std::min(to, end);
            if (!kept.empty() && std::prev(kept.end())->second == begin)
                std::prev(kept.end())->second = at;
            else
                kept.emplace(begin, at);
        }
        if (at < end) drop_pages(kAdoptedOffset + at, end - at);
    }
    // Pages that mremap() has added behind an interval.
    for (const auto& [from, to] : used)
        if (const auto after = kept.upper_bound(from); after != kept.begin() && std::prev(after)->second >= from)
            std::prev(after)->second = std::max(std::prev(after)->second, to);
    intervals_ = std::move(kept);
    update_hull();
}

void Adoption::sweep() {
    const Inside inside(*this);
    if (!intervals_.empty()) sweep_locked();
}

int Adoption::zero(void* address, std::size_t bytes, const std::function<int(void*, std::size_t)>& rest) {
    const Inside inside(*this);
    auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = at + bytes;
    VmAreas areas;
    for (VmArea area; at < end && areas.next(area);) {
        if (!is_own(area) || area.end <= at || area.first >= end) continue;
        if (area.first > at)
            if (const int error = rest(reinterpret_cast<void*>(at), area.first - at); error != 0) return error;
        at = std::max(at, area.first);
        const std::uintptr_t stop = std::min(end, area.end);
        drop_pages(area.offset + (at - area.first), stop - at);
        at = stop;
    }
    return at < end ? rest(reinterpret_cast<void*>(at), end - at) : 0;
}

// The copies are made before the fork, in memory that the child inherits: neither process waits for the other, and the
// child allocates nothing. Stores of other threads that nothing orders with the fork may be missing in them.
void Adoption::before_fork() {
    mutex_.lock();
    s_inside = true;
    if (intervals_.empty()) return;
    VmAreas areas;
    for (VmArea area; areas.next(area);) {
        if (!is_own(area)) continue;
        const int protection = (area.readable ? PROT_READ : 0) | (area.writable ? PROT_WRITE : 0);
        const std::size_t bytes = area.end - area.first;
        void* const copy =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        copies_.push_back({area.first, bytes, area.offset, protection, copy == MAP_FAILED ? nullptr : copy});
        if (copy == MAP_FAILED) continue;
        // Holes of the file stay holes of the copy.
        auto at = static_cast<off_t>(area.offset);
        const auto end = static_cast<off_t>(area.offset + bytes);
        while ((at = ::lseek(fd_, at, SEEK_DATA)) >= 0 && at < end) {
            const off_t stop = std::min<off_t>(std::max<off_t>(::lseek(fd_, at, SEEK_HOLE), at), end);
            while (at < stop) {
                const ssize_t got = ::pread(fd_, static_cast<std::byte*>(copy) + (at - static_cast<off_t>(area.offset)),
                                            static_cast<std::size_t>(stop - at), at);
                if (got <= 0) break;
                at += got;
            }
        }
    }
}

void Adoption::after_fork_in_parent() {
    bool failed = false;
    for (const Copy& copy : copies_) {
        if (copy.address != nullptr) ::munmap(copy.address, copy.bytes);
        failed = failed || copy.address == nullptr;
    }
    copies_.clear();
    s_inside = false;
    mutex_.unlock();
    if (failed)
        base::say(
            "fork: no memory to copy adopted window memory for the child, which may see later stores of this "
            "process there");
}

void Adoption::after_fork_in_child() {
    for (const Copy& copy : copies_) {
        void* const place = reinterpret_cast<void*>(copy.first);
        if (copy.address == nullptr) {
            ::mmap(place, copy.bytes, copy.protection, MAP_PRIVATE | MAP_FIXED, fd_, static_cast<off_t>(copy.offset));
            continue;
        }
        if (copy.protection != (PROT_READ | PROT_WRITE)) ::mprotect(copy.address, copy.bytes, copy.protection);
        // Not by the C library's function: what UCX 1.13 puts in its place drops the last argument.
        ::syscall(SYS_mremap, copy.address, copy.bytes, copy.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    }
    copies_.clear();
    intervals_.clear();
    update_hull();
    s_inside = false;
    mutex_.unlock();
}

std::uint64_t Adoption::bytes() const {
    const Inside inside(*this);
    std::uint64_t sum = 0;
    for (const auto& [first, end] : intervals_)
        sum += end - first;
    return sum;
}

}  // namespace osc::shm
