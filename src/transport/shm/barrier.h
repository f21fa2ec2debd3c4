// A counting barrier in shared memory for the processes of one node.
//
// Why it is right: an arrival is a read-modify-write, so exactly one process sees the count complete; it resets the
// count before it advances the generation, and nobody arrives for the next round before having seen the new
// generation. Everything written before an arrival is visible to everyone after the barrier: arrivals form one release
// sequence that the last arriver acquires, and the generation is released by it and acquired by the others.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/shm/wait.h"

namespace osc::shm {

struct Barrier {
    alignas(64) std::atomic<std::uint32_t> arrived{0};
    alignas(64) std::atomic<std::uint32_t> generation{0};
    Doorbell bell;

    /// Returns when `count` processes have arrived; false if `dead()` gave the wait up.
    template <class Dead>
    bool arrive_and_wait(std::uint32_t count, Dead&& dead) {
        const std::uint32_t now = generation.load(std::memory_order_relaxed);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
            arrived.store(0, std::memory_order_relaxed);
            generation.fetch_add(1, std::memory_order_seq_cst);
            bell.ring();
            return true;
        }
        return wait_until(
            bell, [&] { return generation.load(std::memory_order_seq_cst) != now; }, dead);
    }
};

}  // namespace osc::shm
