// The clock of all waits and policies.
#pragma once

#include <cstdint>
#include <ctime>

namespace osc {

/// CLOCK_MONOTONIC, in ns.
inline std::int64_t now_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

}  // namespace osc
