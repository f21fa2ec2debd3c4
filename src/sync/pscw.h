// Post, start, complete, wait on a node.
//
// A post sets the poster's bit in the origin's control block; the origin's start (here: its first operation to that
// target, or complete) awaits exactly its group's bits and clears only those. A complete adds one to the target's
// counter; wait awaits as many as its group has members and subtracts them before the next post can be published.
//
// Why that is right: a pair has at most one unconsumed post, because the poster's wait returns only after the origin's
// complete, and the origin consumes the post no later than in complete. So one bit per pair holds all there is to
// know, and the post of another process, however early, is another bit: it cannot be taken for this one. The counter
// never holds completes of a later epoch, because those follow posts that follow the subtraction.
#pragma once

#include <cstdint>

#include "transport/shm/control.h"

namespace osc::sync {

/// Tells `origin` that rank `me` has posted.
inline void send_post(const shm::Slot& slot, std::uint32_t me, std::uint32_t origin) {
    shm::ControlBlock& block = slot.block(origin);
    block.posts(me).fetch_or(shm::ControlBlock::bit(me), std::memory_order_seq_cst);
    block.pscw_bell.ring();
}

/// Waits for the post of `target` and consumes it; false if `dead()` gave it up.
template <class Dead>
bool take_post(const shm::Slot& slot, std::uint32_t me, std::uint32_t target, Dead&& dead) {
    shm::ControlBlock& block = slot.block(me);
    std::atomic<std::uint64_t>& word = block.posts(target);
    const std::uint64_t bit = shm::ControlBlock::bit(target);
    if (!shm::wait_until(
            block.pscw_bell, [&] { return (word.load(std::memory_order_seq_cst) & bit) != 0; }, dead))
        return false;
    word.fetch_and(~bit, std::memory_order_acq_rel);
    return true;
}

/// Tells `target` that this origin's operations of the epoch are complete there.
inline void send_complete(const shm::Slot& slot, std::uint32_t target) {
    shm::ControlBlock& block = slot.block(target);
    block.completes.fetch_add(1, std::memory_order_seq_cst);
    block.pscw_bell.ring();
}

/// Whether `count` completes have come; consumes them if so.
inline bool take_completes(const shm::Slot& slot, std::uint32_t me, std::uint32_t count) {
    std::atomic<std::uint32_t>& completes = slot.block(me).completes;
    if (completes.load(std::memory_order_seq_cst) < count) return false;
    completes.fetch_sub(count, std::memory_order_acq_rel);
    return true;
}

/// Waits for `count` completes and consumes them; false if `dead()` gave it up.
template <class Dead>
bool await_completes(const shm::Slot& slot, std::uint32_t me, std::uint32_t count, Dead&& dead) {
    return shm::wait_until(
        slot.block(me).pscw_bell, [&] { return take_completes(slot, me, count); }, dead);
}

}  // namespace osc::sync
