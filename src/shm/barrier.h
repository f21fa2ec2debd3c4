// A counting barrier in shared memory for the processes of one node.
//
// Why it is right: an arrival is a read-modify-write, so exactly one process sees the count complete. It resets the
// count before it advances the generation, and no process arrives for the next round before it has seen the new
// generation. All writes before an arrival are visible to all processes after the barrier: arrivals form one release
// sequence that the last process acquires, and it releases the generation, which the others acquire.
//
// A barrier that one process gave up is broken for good: earlier arrivals would count in the next round.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/function_ref.h"
#include "shm/wait.h"

namespace osc::shm {

struct Barrier {
    alignas(64) std::atomic<std::uint32_t> arrived{0};
    alignas(64) std::atomic<std::uint32_t> generation{0};
    std::atomic<std::uint32_t> broken{0};
    Doorbell bell;

    /// Returns when `count` processes have arrived; false if dead() was true in a waiting process, now or earlier.
    /// `is_last`, if not null, becomes true if this process arrived last.
    bool arrive_and_wait(std::uint32_t count, base::FunctionRef<bool()> dead, bool* is_last = nullptr) {
        if (broken.load(std::memory_order_relaxed) != 0) return false;
        const std::uint32_t now = generation.load(std::memory_order_relaxed);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
            if (is_last != nullptr) *is_last = true;
            arrived.store(0, std::memory_order_relaxed);
            generation.fetch_add(1, std::memory_order_seq_cst);
            bell.ring();
            return true;
        }
        const auto over = [&] { return generation.load(std::memory_order_seq_cst) != now; };
        wait_until(
            bell, [&] { return over() || broken.load(std::memory_order_seq_cst) != 0; }, dead);
        if (over()) return true;
        give_up();
        return false;
    }

    /// Makes this and every later arrive_and_wait() of all processes return false.
    void give_up() {
        broken.exchange(1, std::memory_order_seq_cst);
        bell.ring();
    }
};

}  // namespace osc::shm
