// How long a thread has spent in libosc's wait loops, for statistics. Off, a wait costs one load more; on, two clock
// reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace osc::base {

namespace detail {
inline std::atomic<bool> g_waits_timed{false};
inline thread_local int t_waits = 0;  // nested scopes
inline thread_local std::int64_t t_waited = 0;
}  // namespace detail

/// From now on waits are timed.
inline void time_waits() {
    detail::g_waits_timed.store(true, std::memory_order_relaxed);
}

/// ns that this thread has waited since its start or time_waits().
inline std::int64_t waited_ns() {
    return detail::t_waited;
}

/// Surrounds a wait. Of nested ones the outermost counts.
class WaitScope {
  public:
    WaitScope() : timed_(detail::g_waits_timed.load(std::memory_order_relaxed)) {
        if (__builtin_expect(timed_, 0) && detail::t_waits++ == 0) began_ = now_ns();
    }
    ~WaitScope() {
        if (__builtin_expect(timed_, 0) && --detail::t_waits == 0) detail::t_waited += now_ns() - began_;
    }
    WaitScope(const WaitScope&) = delete;
    WaitScope& operator=(const WaitScope&) = delete;

  private:
    const bool timed_;
    std::int64_t began_ = 0;
};

}  // namespace osc::base
