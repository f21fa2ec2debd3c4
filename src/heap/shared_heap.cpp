// A part that a call frees is discarded first and becomes free afterwards. So the call needs no mutex while it
// discards.
#include "heap/shared_heap.h"

#include <algorithm>
#include <new>

namespace osc::heap {

SharedHeap::SharedHeap(void* base, std::size_t bytes, std::size_t page, Discard discard)
    : base_(reinterpret_cast<std::uintptr_t>(base)), bytes_(bytes), page_(page), discard_(discard) {
    free_.give(base_, bytes_);
}

void* SharedHeap::allocate(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0 || bytes > bytes_) return nullptr;
    const std::size_t length = whole_pages(bytes);
    const std::lock_guard lock(mutex_);
    try {
        const auto start = free_.take(length, std::max(alignment, page_));
        if (!start) return nullptr;
        pieces_.emplace(*start, length);
        return reinterpret_cast<void*>(*start);
    } catch (const std::bad_alloc&) {
        return nullptr;  // the bookkeeping's own memory
    }
}

std::size_t SharedHeap::length(const void* piece) const {
    const std::lock_guard lock(mutex_);
    const auto found = pieces_.find(reinterpret_cast<std::uintptr_t>(piece));
    return found == pieces_.end() ? 0 : found->second;
}

bool SharedHeap::resize(void* piece, std::size_t bytes) {
    if (bytes > bytes_) return false;
    const std::size_t wanted = std::max(whole_pages(bytes), page_);
    const auto start = reinterpret_cast<std::uintptr_t>(piece);
    std::size_t length = 0;
    try {
        const std::lock_guard lock(mutex_);
        const auto found = pieces_.find(start);
        if (found == pieces_.end()) return false;
        length = found->second;
        if (wanted > length && !free_.take_at(start + length, wanted - length)) return false;
        found->second = wanted;
    } catch (const std::bad_alloc&) {
        return false;
    }
    if (wanted < length) give_back(start + wanted, length - wanted);
    return true;
}

bool SharedHeap::release(void* piece) {
    const auto start = reinterpret_cast<std::uintptr_t>(piece);
    std::size_t length = 0;
    {
        const std::lock_guard lock(mutex_);
        const auto found = pieces_.find(start);
        if (found == pieces_.end()) return false;
        length = found->second;
        pieces_.erase(found);
    }
    give_back(start, length);
    return true;
}

void SharedHeap::give_back(std::uintptr_t start, std::size_t bytes) {
    discard_(reinterpret_cast<void*>(start), bytes);
    try {
        const std::lock_guard lock(mutex_);
        free_.give(start, bytes);
    } catch (const std::bad_alloc&) {
        return;  // the range is a little shorter from now on
    }
}

}  // namespace osc::heap
