// What the calls of the epoch room do to single targets: their locks, and what has been put off for them.
#pragma once

#include "epoch/epoch.h"

namespace osc::epoch {

/// Takes the lock of a target; `guard` holds the window's state, and is let go while waiting.
Fault acquire(Core& core, StateGuard& guard, Peer& peer, sync::LockKind kind, bool inside_lock_all = false);

/// Gives it back, if the target is on this node.
void drop(Core& core, Peer& peer);

/// The lock of a target on another node is given back with the last message to it, which is then awaited.
Fault give_back_far(Core& core, const Peer& peer);

/// Awaits what operations on `peer` need in the open epoch, whose kind allows them: its lock, post or fence.
Fault make_ready(Core& core, StateGuard& guard, Peer& peer);

inline bool is_later(Held held) {
    return held == Held::SharedLater || held == Held::ExclusiveLater;
}

inline bool is_word(Held held) {
    return held == Held::SharedWord || held == Held::ExclusiveWord;
}

}  // namespace osc::epoch
