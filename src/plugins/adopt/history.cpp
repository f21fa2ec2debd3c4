// Counts the windows over each range of memory.
// Build: osc_adopt_core
#include "plugins/adopt/history.h"

#include <algorithm>

namespace osc::shm {

bool AdoptionHistory::pays(std::uintptr_t first, std::uintptr_t end) {
    if (end - first <= kSmall) return true;
    auto* range =
        std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.first < end && first < r.end; });
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

}  // namespace osc::shm
