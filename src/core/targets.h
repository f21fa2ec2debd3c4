// What strategies do to single targets: acquire and release locks, await posts and fences, and perform queued
// operations. The caller holds the window's state lock with `guard`; functions that wait release it meanwhile.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "core/core.h"

namespace osc::strategy {

inline bool is_deferred(HeldLock held) {
    return held == HeldLock::SharedDeferred || held == HeldLock::ExclusiveDeferred;
}

inline bool is_two_level(HeldLock held) {
    return held == HeldLock::SharedTwoLevel || held == HeldLock::ExclusiveTwoLevel;
}

/// Acquires the lock of a target: on this node it waits until the lock is granted; on another node it requests the
/// lock, which this process holds from the next reply on. Sets Target::held_lock. `inside_lock_all`: see
/// sync::LockContext.
Fault acquire(Core& core, StateGuard& guard, Target& target, sync::LockKind kind, bool inside_lock_all = false);

/// Acquires the shared locks of all targets of this node that the epoch does not hold yet.
Fault acquire_all_local(Core& core, StateGuard& guard);

/// Forgets the lock of a target, and releases it if the target is on this node.
void drop(Core& core, Target& target);

/// Releases the lock of a target on another node with the last message to it, which the caller then awaits.
void release_remote(Core& core, const Target& target);

/// In a start epoch: awaits the post of a target of the group, once.
Fault await_post(Core& core, StateGuard& guard, Target& target);
/// The same for all other targets of this node: the program may load and store there without a call.
Fault await_local_posts(Core& core, StateGuard& guard);

/// Awaits the lock, post or fence of `target` that operations in the open epoch need.
Fault make_ready(Core& core, StateGuard& guard, Target& target);

/// The same; then performs the operations queued for the target, and opens it for the fast path.
Fault make_open(Core& core, StateGuard& guard, Target& target);

/// Performs the operations queued for a target. The caller does not hold the state lock.
Fault perform_queued(Core& core, std::uint32_t rank);

/// A pause of a thread without any lock that waits for another thread of the process. That one may drive the network;
/// this one drives the host.
void wait_for_other_thread();

/// "`doing` can never complete", because `rank` died.
Fault died(std::uint32_t rank, const char* doing);

/// Runs wait(dead) without the state lock; it returns false if it gave up because dead() is true. Reports the member
/// of `ranks` that died.
using Dead = base::FunctionRef<bool()>;
Fault wait_for(Core& core, StateGuard& guard, std::span<const std::uint32_t> ranks, const char* doing,
               base::FunctionRef<bool(Dead)> wait);

}  // namespace osc::strategy
