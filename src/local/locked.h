// Iteration over elements stripe by stripe, under the stripe's lock: the one mechanism of atomicity (invariant I1) for
// shared memory, cross-memory access and active messages.
#pragma once

#include <algorithm>
#include <array>
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

/// Chunks whose locks a thread may hold together.
inline constexpr std::size_t kMostChunks = 4;

/// Calls `f` under the locks of the chunks that bytes `first` to `last` lie in, kMostChunks at the most. Takes them in
/// ascending order of the stripes' numbers, which every process does: so no two wait for each other. Fault::Dead if the
/// holder of one died.
template <class F>
Fault with_stripes(const Stripes& stripes, std::uint64_t first, std::uint64_t last, F&& f) {
    OSC_ASSERT((last >> kStripeShift) - (first >> kStripeShift) < kMostChunks);
    std::array<std::uint32_t, kMostChunks> numbers;
    std::size_t count = 0;
    for (std::uint64_t chunk = first >> kStripeShift; chunk <= last >> kStripeShift; ++chunk)
        numbers[count++] = ControlBlock::stripe_number(chunk << kStripeShift);
    const auto begin = numbers.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    std::sort(begin, end);
    const auto distinct = std::unique(begin, end);
    std::uint32_t dead = 0;
    auto next = begin;
    while (next != distinct &&
           sync::stripe_lock(stripes.target.stripes[*next].holder, stripes.me, stripes.liveness, dead))
        ++next;
    const bool all = next == distinct;
    if (all) f();
    while (next != begin)
        sync::stripe_unlock(stripes.target.stripes[*--next].holder);
    return all ? Fault::None : fault_of_dead(dead);
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
