// Iteration over elements stripe by stripe, under the stripe's lock: the one mechanism of atomicity (invariant I1) for
// shared memory, cross-memory access and active messages.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
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
/// of `at`, or in the first `chunks` from there.
inline std::size_t count_in_chunk(std::uint64_t at, std::size_t width, std::size_t count, std::uint64_t chunks = 1) {
    const std::uint64_t end = ((at >> kStripeShift) + chunks) << kStripeShift;
    return std::min<std::size_t>(count, (end - at + width - 1) / width);
}

inline Fault fault_of_dead(std::uint32_t rank) {
    return base::fail(Fault::Dead, "rank %u died in the middle of an accumulate; its target's data is lost", rank);
}

/// Calls `f` under the lock `holder`. Fault::Dead if its holder died.
template <class F>
Fault with_stripe(const Stripes& stripes, std::atomic<std::uint32_t>& holder, F&& f) {
    std::uint32_t dead = 0;
    if (!sync::stripe_lock(holder, stripes.me, stripes.liveness, dead)) return fault_of_dead(dead);
    f();
    sync::stripe_unlock(holder);
    return Fault::None;
}

/// The stripes of the chunks that bytes `first` to `last` lie in, one bit each.
inline std::uint32_t stripes_between(std::uint64_t first, std::uint64_t last) {
    std::uint32_t set = 0;
    for (std::uint64_t chunk = first >> kStripeShift; chunk <= last >> kStripeShift; ++chunk)
        set |= 1u << ControlBlock::stripe_number(chunk << kStripeShift);
    return set;
}

/// Calls `f` under the locks of a set of stripes. Takes them in ascending order, as every process does: so no two wait
/// for each other. Fault::Dead if the holder of one died.
template <class F>
Fault with_stripes(const Stripes& stripes, std::uint32_t set, F&& f) {
    const auto holder = [&](std::uint32_t left) -> std::atomic<std::uint32_t>& {
        return stripes.target.stripes[std::countr_zero(left)].holder;
    };
    std::uint32_t dead = 0;
    std::uint32_t left = set;
    while (left != 0 && sync::stripe_lock(holder(left), stripes.me, stripes.liveness, dead))
        left &= left - 1;
    if (left == 0) f();
    for (std::uint32_t taken = set & ~left; taken != 0; taken &= taken - 1)
        sync::stripe_unlock(holder(taken));
    return left == 0 ? Fault::None : fault_of_dead(dead);
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
