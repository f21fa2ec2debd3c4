// What happens to adopted memory after its adoption: the program unmaps, frees or discards it.
// Build: osc_adopt_core
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/pages.h"
#include "plugins/adopt/adoption.h"
#include "shm/vm_areas.h"

namespace osc::shm {

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

}  // namespace osc::shm
