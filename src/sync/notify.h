// The notification counters of one process in one window, in its arena, where the processes of its node map them.
//
// A notified operation first completes its data at the target and then increments one counter: on a node the origin
// does, between nodes the target when it executes the Notify record behind the data. The increment is a seq_cst
// read-modify-write, so a process that reads the new value sees the data. The bell wakes threads of the owner that
// sleep in a wait; the protocol is the doorbell's (docs/ARCHITECTURE.md, "Sleeping").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/assert.h"
#include "shm/wait.h"
#include "trace/recorder.h"

namespace osc::sync {

struct alignas(64) NotifyBoard {
    /// The most counters of one process.
    static constexpr std::uint32_t kMost = 1u << 20;

    const std::uint32_t room;                  // counters that the memory has room for
    const bool traced;                         // the memory has room for flows too
    std::atomic<std::uint32_t> count{0};       // counters in use
    std::atomic<std::uint32_t> fast_count{0};  // of them, those that fast paths may increment: all or, if traced, none
    shm::Doorbell bell;
    // The counters follow; then, for the timeline, as many flows: of the last notification of each.

    NotifyBoard(std::uint32_t counters, bool with_flows) : room(counters), traced(with_flows) {
        for (std::uint32_t i = 0; i < room; ++i)
            new (&counter(i)) std::atomic<std::uint64_t>(0);
        for (std::uint32_t i = 0; traced && i < room; ++i)
            new (&flow(i)) std::atomic<std::uint64_t>(0);
    }
    static std::size_t bytes_for(std::uint32_t counters, bool with_flows) {
        return sizeof(NotifyBoard) + std::size_t{counters} * (with_flows ? 2 : 1) * sizeof(std::uint64_t);
    }

    std::atomic<std::uint64_t>& counter(std::uint32_t index) {
        OSC_ASSERT(index < room);
        return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1)[index];
    }

    /// Counts a notification. Thread-safe, in every process that maps the board.
    void increment(std::uint32_t index) {
        counter(index).fetch_add(1, std::memory_order_seq_cst);
        bell.ring();
    }
    /// The same; with a timeline it also records the start of an arrow to the call that sees the notification.
    void add(std::uint32_t index) {
        if (__builtin_expect(!traced, 1)) return increment(index);
        const trace::Span span(trace::pack(trace::Kind::Notify, 0, index), trace::is_open() ? trace::new_flow() : 0);
        flow(index).store(span.value(), std::memory_order_relaxed);
        increment(index);
    }
    /// The owner has seen counter `index` at `value`: records the end of the arrow from its last notification.
    void seen(std::uint32_t index, std::uint64_t value) {
        if (__builtin_expect(!traced, 1) || value == 0 || !trace::is_open()) return;
        if (const std::uint64_t last = flow(index).exchange(0, std::memory_order_relaxed); last != 0)
            const trace::Span span(trace::pack(trace::Kind::Notified, 0, index), last);
    }

    std::atomic<std::uint64_t>& flow(std::uint32_t index) {
        OSC_ASSERT(traced && index < room);
        return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1)[std::size_t{room} + index];
    }

    // For the owner.

    /// Sets all counters to 0 and their number. No process notifies meanwhile.
    void reset_all(std::uint32_t counters) {
        for (std::uint32_t i = 0; i < room; ++i)
            counter(i).store(0, std::memory_order_relaxed);
        fast_count.store(traced ? 0 : counters, std::memory_order_relaxed);
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
    std::uint32_t await(std::uint32_t first, std::uint32_t counters, std::uint64_t threshold, std::uint64_t& value,
                        base::FunctionRef<bool()> dead) {
        std::uint32_t found = kNone;
        shm::wait_until(
            bell, [&] { return (found = find(first, counters, threshold, value)) != kNone; }, dead);
        return found;
    }
};

}  // namespace osc::sync
