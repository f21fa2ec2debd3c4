// The notification counters of one process in one window, in its arena, where the processes of its node map them.
//
// A notified operation first completes its data at the target and then increments one counter: on a node the origin
// does, between nodes the target when it executes the Notify record behind the data. The increment is a seq_cst
// read-modify-write, so a process that reads the new value sees the data. The bell wakes threads of the owner that
// sleep in a wait; the protocol is the doorbell's (docs/ARCHITECTURE.md, "Sleeping").
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/assert.h"
#include "transport/shm/wait.h"

namespace osc::sync {

struct alignas(64) NotifyBoard {
    /// The most counters of one process.
    static constexpr std::uint32_t kMost = 1u << 20;

    const std::uint32_t room;             // counters that the memory has room for
    std::atomic<std::uint32_t> count{0};  // counters in use
    shm::Doorbell bell;
    // The counters follow.

    explicit NotifyBoard(std::uint32_t counters) : room(counters) {
        for (std::uint32_t i = 0; i < room; ++i)
            new (&counter(i)) std::atomic<std::uint64_t>(0);
    }
    static std::size_t bytes_for(std::uint32_t counters) {
        return sizeof(NotifyBoard) + std::size_t{counters} * sizeof(std::uint64_t);
    }

    std::atomic<std::uint64_t>& counter(std::uint32_t index) {
        OSC_ASSERT(index < room);
        return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1)[index];
    }

    /// Counts a notification. Thread-safe, in every process that maps the board.
    void add(std::uint32_t index) {
        counter(index).fetch_add(1, std::memory_order_seq_cst);
        bell.ring();
    }

    // For the owner.

    /// Sets all counters to 0 and their number. No process notifies meanwhile.
    void reset_all(std::uint32_t counters) {
        for (std::uint32_t i = 0; i < room; ++i)
            counter(i).store(0, std::memory_order_relaxed);
        count.store(counters, std::memory_order_release);
    }

    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    /// The first counter of [first, first + counters) that is at least `threshold`, with its value; or kNone.
    std::uint32_t find(std::uint32_t first, std::uint32_t counters, std::uint64_t threshold, std::uint64_t& value) {
        for (std::uint32_t i = first; i < first + counters; ++i) {
            value = counter(i).load(std::memory_order_seq_cst);
            if (value >= threshold) return i;
        }
        return kNone;
    }
    /// Waits until find() finds a counter. Returns kNone only if dead() ended the wait.
    template <class Dead>
    std::uint32_t await(std::uint32_t first, std::uint32_t counters, std::uint64_t threshold, std::uint64_t& value,
                        Dead&& dead) {
        std::uint32_t found = kNone;
        shm::wait_until(
            bell, [&] { return (found = find(first, counters, threshold, value)) != kNone; }, dead);
        return found;
    }
};

}  // namespace osc::sync
