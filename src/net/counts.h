// What the network did, for tests and statistics.
#pragma once

#include <atomic>
#include <cstdint>

namespace osc::net {

struct Counts {
    std::atomic<std::uint64_t> messages{0};  // sent, of all kinds
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> writes{0};   // direct
    std::atomic<std::uint64_t> reads{0};    // direct
    std::atomic<std::uint64_t> atomics{0};  // on words of locks, and accumulates by the provider
    std::atomic<std::uint64_t> retries{0};  // posts for which the provider had no room, to be repeated
    // Messages dropped: malformed, with a wrong secret, from an unknown sender, a reply to no request, or a notice for
    // a window that is gone.
    std::atomic<std::uint64_t> strangers{0};
};

inline void count(std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace osc::net
