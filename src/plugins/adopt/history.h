// When the copy of an adoption pays: which memory had windows before.
//
// The copy of small memory costs little, so its first window makes it shared. Large memory stays private in its first
// window, which may be the only one and see few operations, and becomes shared in the second. If memory that was
// adopted is private again, the program has freed it meanwhile: each time it takes twice as many windows, so that a
// program that allocates memory for each window pays for few copies.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace osc::shm {

/// The ranges of the last windows over memory that adoption found private. Not thread-safe.
class AdoptionHistory {
  public:
    /// Notes a window over [first, end), of which some is private memory, and returns whether an adoption pays now.
    bool pays(std::uintptr_t first, std::uintptr_t end) {
        if (end - first <= kSmall) return true;
        auto* range = std::find_if(ranges_.begin(), ranges_.end(),
                                   [&](const Range& r) { return r.first < end && first < r.end; });
        if (range == ranges_.end()) {
            range = &ranges_[next_];
            next_ = (next_ + 1) % kRanges;
            *range = {first, end, 0, 2};
        }
        range->first = std::min(range->first, first);
        range->end = std::max(range->end, end);
        if (++range->windows < range->wanted) return false;
        range->windows = 0;
        range->wanted = std::min(2 * range->wanted, kMost);
        return true;
    }

    /// Memory up to this size becomes shared in its first window: 1 MiB, and the page of malloc's header.
    static constexpr std::size_t kSmall = (std::size_t{1} << 20) + 4096;

  private:
    struct Range {
        std::uintptr_t first = 0;
        std::uintptr_t end = 0;
        unsigned windows = 0;  // since the last adoption
        unsigned wanted = 0;   // windows until the next one
    };
    static constexpr unsigned kMost = 1024;
    static constexpr std::size_t kRanges = 64;  // the oldest is forgotten
    std::array<Range, kRanges> ranges_{};
    std::size_t next_ = 0;
};

}  // namespace osc::shm
