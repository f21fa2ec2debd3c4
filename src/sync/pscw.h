// Post, start, complete and wait between processes of one node.
//
// A post sets the target's bit in the origin's control block. The origin awaits exactly the bits of its group and
// clears only those: in start, with the first operation on a target, or in complete, as the strategy says. A complete
// increments the target's counter. Wait awaits as many completes as its group has members and subtracts them before the
// next post.
//
// Why this is right: a pair of processes has at most one unconsumed post, because the target's wait returns only after
// the origin's complete, and the origin consumes the post no later than in complete. So one bit per pair is enough, and
// an early post of another process sets another bit. The counter never contains completes of a later epoch, because
// those follow posts that follow the subtraction.
#pragma once

#include <cstdint>

#include "shm/control.h"

namespace osc::sync {

/// Publishes the post of rank `me` to `origin`; false if its last post was not consumed yet.
inline bool send_post(const shm::ControlTable& controls, std::uint32_t me, std::uint32_t origin) {
    shm::ControlBlock& block = controls.block(origin);
    const std::uint64_t bit = shm::ControlBlock::bit(me);
    const std::uint64_t before = block.posts(me).fetch_or(bit, std::memory_order_seq_cst);
    block.pscw_bell.ring();
    return (before & bit) == 0;
}

/// Waits for the post of `target` and consumes it; false if dead() ended the wait.
inline bool take_post(const shm::ControlTable& controls, std::uint32_t me, std::uint32_t target,
                      base::FunctionRef<bool()> dead) {
    shm::ControlBlock& block = controls.block(me);
    std::atomic<std::uint64_t>& word = block.posts(target);
    const std::uint64_t bit = shm::ControlBlock::bit(target);
    if (!shm::wait_until(
            block.pscw_bell, [&] { return (word.load(std::memory_order_seq_cst) & bit) != 0; }, dead))
        return false;
    word.fetch_and(~bit, std::memory_order_acq_rel);
    return true;
}

/// Publishes to `target` that this origin's operations of the epoch are complete there.
inline void send_complete(const shm::ControlTable& controls, std::uint32_t target) {
    shm::ControlBlock& block = controls.block(target);
    block.completes.fetch_add(1, std::memory_order_seq_cst);
    block.pscw_bell.ring();
}

/// Whether `count` completes have arrived; consumes them if so.
inline bool take_completes(const shm::ControlTable& controls, std::uint32_t me, std::uint32_t count) {
    std::atomic<std::uint32_t>& completes = controls.block(me).completes;
    if (completes.load(std::memory_order_seq_cst) < count) return false;
    completes.fetch_sub(count, std::memory_order_acq_rel);
    return true;
}

/// Waits for `count` completes and consumes them; false if dead() ended the wait.
inline bool await_completes(const shm::ControlTable& controls, std::uint32_t me, std::uint32_t count,
                            base::FunctionRef<bool()> dead) {
    return shm::wait_until(
        controls.block(me).pscw_bell, [&] { return take_completes(controls, me, count); }, dead);
}

}  // namespace osc::sync
