// The lock around every accumulate-family operation on a stripe of a target's memory (invariant I1). A thread that
// takes several (shm::with_stripes) takes them in ascending order, so no two wait for each other; a plain store
// releases one. Waiters spin, then yield, then sleep: the holder releases within some microseconds unless it was
// preempted or has died.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/assert.h"
#include "sync/lock.h"

namespace osc::sync {

/// Set in the stripe of a holder that died, whose element may be half written: no process takes it any more.
inline constexpr std::uint32_t kLostStripe = 1u << 31;

/// The contended path of stripe_lock(); false if the holder died (its rank in `dead`). The first process that finds out
/// waits for 100 ms, and marks the stripe as lost: later calls do not wait. A target's network thread may meet the
/// stripe in each record of a message, and answers no other process meanwhile.
bool stripe_wait(std::atomic<std::uint32_t>& holder, std::uint32_t me, Liveness& liveness, std::uint32_t& dead);

/// How often this process has called it.
std::uint64_t stripe_waits();

/// Takes the stripe for rank `me`; false if its holder died.
inline bool stripe_lock(std::atomic<std::uint32_t>& holder, std::uint32_t me, Liveness& liveness, std::uint32_t& dead) {
    std::uint32_t free = 0;
    if (__builtin_expect(
            holder.compare_exchange_strong(free, me + 1, std::memory_order_acquire, std::memory_order_relaxed), 1))
        return true;
    return stripe_wait(holder, me, liveness, dead);
}

inline void stripe_unlock(std::atomic<std::uint32_t>& holder) {
    OSC_ASSERT(holder.load(std::memory_order_relaxed) != 0);
    holder.store(0, std::memory_order_release);
}

}  // namespace osc::sync
