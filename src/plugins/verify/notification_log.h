// What this process has seen of its notification counters (osc/notify.h). A process that sees a notification may order
// what follows behind the operation, at once or by messages to others; the origin need not know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace osc::check {

/// One thread at a time. Times are in ns, ascending.
class NotificationLog {
  public:
    /// `threads`: calls may run side by side, so that a counter may have changed although it has the same value.
    explicit NotificationLog(bool threads) : threads_(threads) {}

    /// A call that returns at `now` has read a counter; it sets it to 0 if `resets`.
    void observe(std::uint32_t counter, std::uint64_t value, bool resets, std::int64_t now) {
        Counter& one = counters_[counter];
        const bool news = value != 0 && (threads_ || value != one.last);
        one.last = resets ? 0 : value;
        if (!news) return;
        if (kept_ == kMost)
            full_ = true;
        else
            one.seen.push_back(now);
        kept_ += full_ ? 0 : 1;
    }
    /// All counters are 0.
    void reset_all() {
        for (auto& [number, one] : counters_)
            one.last = 0;
    }

    /// The time from which on this process may have known that an operation which began at `began` was complete, from
    /// its notification; kNever if it has not seen it.
    static constexpr std::int64_t kNever = INT64_MAX;
    std::int64_t seen_since(std::uint32_t counter, std::int64_t began) const {
        if (full_) return began;
        const auto found = counters_.find(counter);
        if (found == counters_.end()) return kNever;
        const auto at = std::lower_bound(found->second.seen.begin(), found->second.seen.end(), began);
        return at != found->second.seen.end() ? *at : kNever;
    }

  private:
    static constexpr std::size_t kMost = 1'000'000;
    struct Counter {
        std::uint64_t last = 0;
        std::vector<std::int64_t> seen;
    };
    const bool threads_;
    std::map<std::uint32_t, Counter> counters_;
    std::size_t kept_ = 0;
    bool full_ = false;
};

}  // namespace osc::check
