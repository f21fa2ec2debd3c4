// A part that a call frees beyond what is kept is discarded first and becomes free afterwards. So the call needs no
// mutex while it discards.
#include "heap/shared_heap.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

namespace osc::heap {

SharedHeap::SharedHeap(void* base, std::size_t bytes, std::size_t page, std::size_t keep, Discard discard)
    : base_(reinterpret_cast<std::uintptr_t>(base)),
      bytes_(bytes),
      page_(page),
      keep_(keep),
      discard_(discard),
      dumped_(base_) {
    free_.give(base_, bytes_);
}

void* SharedHeap::allocate(std::size_t bytes, std::size_t alignment, bool zero) {
    if (bytes == 0 || bytes > bytes_) return nullptr;
    const std::size_t length = whole_pages(bytes);
    const std::size_t aligned = std::max(alignment, page_);
    std::optional<std::uint64_t> start;
    bool old = false;
    try {
        std::map<std::uintptr_t, std::size_t> made{{0, length}};  // allocated before a range is taken
        const Guard guard(*this);
        start = kept_.take(length, aligned);
        old = start.has_value();
        if (old)
            kept_bytes_ -= length;
        else
            start = free_.take(length, aligned);
        if (!start && kept_bytes_ > 0) {
            discard_kept();
            start = free_.take(length, aligned);
        }
        if (!start) return nullptr;
        auto node = made.extract(made.begin());
        node.key() = *start;
        pieces_.insert(std::move(node));
        show_in_dumps(*start + length);
    } catch (const std::bad_alloc&) {
        return nullptr;  // the bookkeeping's own memory
    }
    auto* const piece = reinterpret_cast<void*>(*start);
    if (old && zero) std::memset(piece, 0, length);
    return piece;
}

std::size_t SharedHeap::length(const void* piece) const {
    const Guard guard(*this);
    const auto found = pieces_.find(reinterpret_cast<std::uintptr_t>(piece));
    return found == pieces_.end() ? 0 : found->second;
}

bool SharedHeap::resize(void* piece, std::size_t bytes) {
    if (bytes > bytes_) return false;
    const std::size_t wanted = std::max(whole_pages(bytes), page_);
    const auto start = reinterpret_cast<std::uintptr_t>(piece);
    std::size_t length = 0;
    try {
        const Guard guard(*this);
        const auto found = pieces_.find(start);
        if (found == pieces_.end()) return false;
        length = found->second;
        if (wanted > length && !free_.take_at(start + length, wanted - length)) {
            if (!kept_.take_at(start + length, wanted - length)) return false;
            kept_bytes_ -= wanted - length;
        }
        found->second = wanted;
        show_in_dumps(start + wanted);
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
        const Guard guard(*this);
        const auto found = pieces_.find(start);
        if (found == pieces_.end()) return false;
        length = found->second;
        pieces_.erase(found);
    }
    give_back(start, length);
    return true;
}

void SharedHeap::give_back(std::uintptr_t start, std::size_t bytes) {
    try {
        {
            const Guard guard(*this);
            if (kept_bytes_ + bytes <= keep_) {
                kept_.give(start, bytes);
                kept_bytes_ += bytes;
                return;
            }
        }
        discard_(reinterpret_cast<void*>(start), bytes);
        const Guard guard(*this);
        free_.give(start, bytes);
    } catch (const std::bad_alloc&) {
        return;  // the range is a little shorter from now on
    }
}

// With the mutex. Core files leave the reserved range out, because a dump would give it pages, but for what was used
// once. Not by the C library's madvise, which libosc redirects.
void SharedHeap::show_in_dumps(std::uintptr_t end) {
    if (end <= dumped_) return;
    ::syscall(SYS_madvise, dumped_, end - dumped_, MADV_DODUMP);
    dumped_ = end;
}

// With the mutex.
void SharedHeap::discard_kept() {
    while (const auto range = kept_.take_first()) {
        kept_bytes_ -= range->second;
        discard_(reinterpret_cast<void*>(range->first), range->second);
        free_.give(range->first, range->second);
    }
}

}  // namespace osc::heap
