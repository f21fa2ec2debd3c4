// How long a thread has spent in libosc's wait loops, for statistics and the timeline. Off, a wait costs one load more;
// on, two clock reads for each of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/stamp.h"

namespace osc::base {

namespace detail {
inline std::atomic<bool> g_waits_timed{false};
inline std::atomic<void (*)(std::uint64_t, std::int64_t)> g_wait_ended[2]{};
inline std::atomic<std::size_t> g_wait_observers{0};
[[gnu::tls_model("initial-exec")]] inline constinit thread_local int t_waits = 0;  // nested scopes
[[gnu::tls_model("initial-exec")]] inline constinit thread_local std::int64_t t_waited = 0;
}  // namespace detail

/// From now on waits are timed, and each thread calls ended(the stamp when it began, its ns) at the end of a wait. Two
/// observers at most.
inline void observe_waits(void (*ended)(std::uint64_t began, std::int64_t ns)) {
    detail::g_wait_ended[detail::g_wait_observers.fetch_add(1, std::memory_order_relaxed)].store(
        ended, std::memory_order_relaxed);
    detail::g_waits_timed.store(true, std::memory_order_relaxed);
}

/// ns that this thread has waited since its start or the first observe_waits().
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
        const std::int64_t ns = now_ns() - began_;
        detail::t_waited += ns;
        for (const auto& observer : detail::g_wait_ended)
            if (const auto ended = observer.load(std::memory_order_relaxed); ended != nullptr) ended(stamp_, ns);
    }

    const bool timed_;
    std::int64_t began_ = 0;
    std::uint64_t stamp_ = 0;
};

}  // namespace osc::base
