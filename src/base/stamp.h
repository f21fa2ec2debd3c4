// The clock of the timeline (OSC_TRACE), read twice in most traced calls: the processor's time-stamp counter where all
// cores share one that never stops, else CLOCK_MONOTONIC. The counter takes less than half the time of clock_gettime().
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace osc::base {

/// Whether stamp() counts ticks of the time-stamp counter; otherwise ns. Set once, before the first stamp.
inline bool g_stamps_are_ticks = false;

/// The time now, for intervals of one process and comparisons within one machine.
inline std::uint64_t stamp() {
#if defined(__x86_64__)
    if (__builtin_expect(g_stamps_are_ticks, 1)) return __builtin_ia32_rdtsc();
#endif
    return static_cast<std::uint64_t>(now_ns());
}

}  // namespace osc::base
