// First fit over an ordered map of free ranges.
#include "shm/spans.h"

#include <iterator>
#include <utility>

#include "base/assert.h"

namespace osc::shm {

// Removes [start, start + bytes) from a range that contains it. Only a range that falls in two needs memory, and
// nothing has changed if there is none.
void FreeSpans::cut(Ranges::iterator range, std::uint64_t start, std::uint64_t bytes) {
    const std::uint64_t lead = start - range->first;
    const std::uint64_t rest = range->second - lead - bytes;
    if (lead > 0) {
        if (rest > 0) free_.emplace(start + bytes, rest);
        range->second = lead;
        return;
    }
    auto node = free_.extract(range);
    if (rest == 0) return;
    node.key() = start + bytes;
    node.mapped() = rest;
    free_.insert(std::move(node));
}

std::optional<std::uint64_t> FreeSpans::take(std::uint64_t bytes, std::uint64_t alignment) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
        const std::uint64_t first = it->first;
        const std::uint64_t length = it->second;
        const std::uint64_t lead = (alignment - first % alignment) % alignment;
        if (lead > length || bytes > length - lead) continue;
        cut(it, first + lead, bytes);
        return first + lead;
    }
    return std::nullopt;
}

bool FreeSpans::take_at(std::uint64_t start, std::uint64_t bytes) {
    auto it = free_.upper_bound(start);
    if (it == free_.begin()) return false;
    --it;
    const auto [first, length] = *it;
    if (start - first > length || bytes > length - (start - first)) return false;
    cut(it, start, bytes);
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
    const bool meets_next = next != free_.end() && start + bytes == next->first;
    if (next != free_.begin()) {
        const auto previous = std::prev(next);
        if (previous->first + previous->second == start) {
            previous->second += bytes + (meets_next ? next->second : 0);
            if (meets_next) free_.erase(next);
            return;
        }
    }
    if (!meets_next) {
        free_.emplace(start, bytes);
        return;
    }
    auto node = free_.extract(next);
    node.key() = start;
    node.mapped() += bytes;
    free_.insert(std::move(node));
}

}  // namespace osc::shm
