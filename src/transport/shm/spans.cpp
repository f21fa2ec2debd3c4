// First fit over an ordered map of free ranges.
#include "transport/shm/spans.h"

#include <iterator>

#include "base/assert.h"

namespace osc::shm {

std::optional<std::uint64_t> FreeSpans::take(std::uint64_t bytes, std::uint64_t alignment) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
        const std::uint64_t first = it->first;
        const std::uint64_t length = it->second;
        const std::uint64_t lead = (alignment - first % alignment) % alignment;
        if (lead > length || bytes > length - lead) continue;
        const std::uint64_t start = first + lead;
        free_.erase(it);
        if (lead > 0) free_.emplace(first, lead);
        if (length - lead > bytes) free_.emplace(start + bytes, length - lead - bytes);
        return start;
    }
    return std::nullopt;
}

bool FreeSpans::take_at(std::uint64_t start, std::uint64_t bytes) {
    auto it = free_.upper_bound(start);
    if (it == free_.begin()) return false;
    --it;
    const auto [first, length] = *it;
    if (start - first > length || bytes > length - (start - first)) return false;
    free_.erase(it);
    if (start > first) free_.emplace(first, start - first);
    if (first + length > start + bytes) free_.emplace(start + bytes, first + length - start - bytes);
    return true;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> FreeSpans::take_first() {
    if (free_.empty()) return std::nullopt;
    const std::pair<std::uint64_t, std::uint64_t> first = *free_.begin();
    free_.erase(free_.begin());
    return first;
}

void FreeSpans::give(std::uint64_t start, std::uint64_t bytes) {
    auto next = free_.lower_bound(start);
    OSC_ASSERT(bytes > 0);
    OSC_ASSERT(next == free_.end() || start + bytes <= next->first);
    OSC_ASSERT(next == free_.begin() || std::prev(next)->first + std::prev(next)->second <= start);
    if (next != free_.end() && start + bytes == next->first) {
        bytes += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        const auto previous = std::prev(next);
        if (previous->first + previous->second == start) {
            start = previous->first;
            bytes += previous->second;
            free_.erase(previous);
        }
    }
    free_.emplace(start, bytes);
}

}  // namespace osc::shm
