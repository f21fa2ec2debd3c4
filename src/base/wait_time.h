// How long a thread has spent in libosc's wait loops, for statistics and the timeline. Off, a wait costs one load more;
// on, two clock reads for each of them.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/stamp.h"

namespace osc::base {

namespace detail {
inline std::atomic<bool> g_waits_timed{false};
inline std::atomic<void (*)(std::uint64_t)> g_wait_ended{nullptr};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local int t_waits = 0;  // nested scopes
[[gnu::tls_model("initial-exec")]] inline constinit thread_local std::int64_t t_waited = 0;
}  // namespace detail

/// From now on waits are timed.
inline void time_waits() {
    detail::g_waits_timed.store(true, std::memory_order_relaxed);
}

/// From now on waits are timed, and each thread calls ended(the stamp when it began) at the end of a wait.
inline void observe_waits(void (*ended)(std::uint64_t began)) {
    detail::g_wait_ended.store(ended, std::memory_order_relaxed);
    time_waits();
}

/// ns that this thread has waited since its start or time_waits().
inline std::int64_t waited_ns() {
    return detail::t_waited;
}

/// Surrounds a wait. Of nested ones the outermost counts.
class TimedWait {
  public:
    TimedWait() : timed_(detail::g_waits_timed.load(std::memory_order_relaxed)) {
        if (__builtin_expect(timed_, 0) && detail::t_waits++ == 0) begin();
    }
    ~TimedWait() {
        if (__builtin_expect(timed_, 0) && --detail::t_waits == 0) end();
    }
    TimedWait(const TimedWait&) = delete;
    TimedWait& operator=(const TimedWait&) = delete;

  private:
    void begin() {
        stamp_ = stamp();
        began_ = now_ns();
    }
    void end() const {
        detail::t_waited += now_ns() - began_;
        if (void (*const ended)(std::uint64_t) = detail::g_wait_ended.load(std::memory_order_relaxed); ended != nullptr)
            ended(stamp_);
    }

    const bool timed_;
    std::int64_t began_ = 0;
    std::uint64_t stamp_ = 0;
};

}  // namespace osc::base
