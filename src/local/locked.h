// Iteration over elements stripe by stripe, under the stripe's lock: the one mechanism of atomicity (invariant I1) for
// shared memory, cross-memory access and active messages.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fault.h"
#include "shm/control.h"
#include "sync/stripe.h"

namespace osc::shm {

/// The arguments of taking stripe locks of `target` by process `me`.
struct Stripes {
    ControlBlock& target;
    std::uint32_t me;
    sync::Liveness& liveness;
};

/// The number of elements, of `count` elements of `width` bytes from byte `at` on, whose first byte lies in the chunk
/// of `at`: one lock covers them.
inline std::size_t count_in_chunk(std::uint64_t at, std::size_t width, std::size_t count) {
    const std::uint64_t end = ((at >> kStripeShift) + 1) << kStripeShift;
    return std::min<std::size_t>(count, (end - at + width - 1) / width);
}

/// Calls `f` under the lock `holder`. Fault::Dead if its holder died.
template <class F>
Fault with_stripe(const Stripes& stripes, std::atomic<std::uint32_t>& holder, F&& f) {
    std::uint32_t dead = 0;
    if (!sync::stripe_lock(holder, stripes.me, stripes.liveness, dead))
        return base::fail(Fault::Dead, "rank %u died in the middle of an accumulate; its target's data is lost", dead);
    f();
    sync::stripe_unlock(holder);
    return Fault::None;
}

/// Calls f(first, n) for consecutive runs of the `count` elements of `width` bytes at byte `disp`, each run under the
/// lock of its stripe. Fault::Dead if the holder of a lock died.
template <class F>
Fault for_each_locked(const Stripes& stripes, std::int64_t disp, std::size_t width, std::size_t count, F&& f) {
    std::size_t first = 0;
    while (first < count) {
        const auto at = static_cast<std::uint64_t>(disp) + first * width;
        const std::size_t n = count_in_chunk(at, width, count - first);
        const Fault fault = with_stripe(stripes, stripes.target.stripe_of(at), [&] { f(first, n); });
        if (fault != Fault::None) return fault;
        first += n;
    }
    return Fault::None;
}

}  // namespace osc::shm
