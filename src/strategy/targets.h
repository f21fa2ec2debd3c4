// What strategies do to single targets: acquiring and dropping their locks, awaiting their posts and fences, and having
// done what is queued for them. The caller holds the window's state with `guard`, which is let go while waiting.
#pragma once

#include <cstdint>
#include <span>

#include "strategy/core.h"

namespace osc::strategy {

inline bool is_later(Held held) {
    return held == Held::SharedLater || held == Held::ExclusiveLater;
}

inline bool is_word(Held held) {
    return held == Held::SharedWord || held == Held::ExclusiveWord;
}

/// Acquires the lock of a target of this node, waiting for its turn; asks for that of another node's, which is held
/// with the next reply. Sets Peer::held. `inside_lock_all`: see sync::LockContext.
Fault acquire(Core& core, StateGuard& guard, Peer& peer, sync::LockKind kind, bool inside_lock_all = false);

/// Acquires the shared locks of all targets of this node that the epoch does not hold yet.
Fault acquire_all_here(Core& core, StateGuard& guard);

/// Gives the lock back, if the target is on this node.
void drop(Core& core, Peer& peer);

/// Gives the lock of a target of another node back with the last message to it, which the caller then awaits.
Fault give_back_far(Core& core, const Peer& peer);

/// In a start epoch: awaits the post of a target of the group, once.
Fault await_post(Core& core, StateGuard& guard, Peer& peer);

/// Awaits what operations on `peer` need in the open epoch, whose kind allows them: its lock, post or fence.
Fault make_ready(Core& core, StateGuard& guard, Peer& peer);

/// The same, has done what was queued for the target, and opens it for the fast path.
Fault make_open(Core& core, StateGuard& guard, Peer& peer);

/// Has done what was queued for a target, if anything was. The caller does not hold the state.
Fault do_now(Core& core, std::uint32_t target);

/// "`doing` can never complete", because `rank` died.
Fault died(std::uint32_t rank, const char* doing);

/// Waits with the state let go: `wait(dead)` returns false if it gave up because dead() is true. Reports the member of
/// `ranks` that died.
template <class Wait>
Fault wait_for(Core& core, StateGuard& guard, std::span<const std::uint32_t> ranks, const char* doing, Wait&& wait) {
    std::int64_t dead = -1;
    const auto look = [&] {
        for (const std::uint32_t rank : ranks)
            if (dead < 0 && !core.alive(rank)) dead = rank;
        return dead >= 0;
    };
    if (guard.unlocked([&] { return wait(look); })) return Fault::None;
    return died(static_cast<std::uint32_t>(dead), doing);
}

}  // namespace osc::strategy
