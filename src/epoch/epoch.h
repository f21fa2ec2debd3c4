// What is legal now, and the synchronisation calls: each checks the state of the window's epochs, changes it, and has
// the sync room do the work. Collective and passive calls alike return a Fault; diag::fault_text() says the rule.
// Thread-safe where the window is (MPI_THREAD_MULTIPLE). Sections are those of the MPI 4.1 report.
#pragma once

#include <span>

#include "strategy/core.h"
#include "strategy/deferred_lock.h"

namespace osc::epoch {

/// The asserts of the standard, free of the host's constants.
enum Assert : unsigned {
    kNoCheck = 1,
    kNoStore = 2,
    kNoPut = 4,
    kNoPrecede = 8,
    kNoSucceed = 16,
};

/// Lets an operation go to `peer` in the epoch that is open. With `later`, it may be set: then the operation is to be
/// put off. Otherwise takes the lock or awaits the post that it needs, and has done what was put off for this target
/// before.
Fault open_target(Core& core, Peer& peer, bool* later = nullptr);

/// Ends what the targets that operations have gone to allow, all but those locked one by one.
void close_touched(Core& core);

Fault fence(Core& core, unsigned asserts);                                         // 12.5.1
Fault post(Core& core, std::span<const std::uint32_t> origins, unsigned asserts);  // 12.5.2
/// Without `may_wait` posts are awaited by what needs them, also where starts are immediate.
Fault start(Core& core, std::span<const std::uint32_t> targets, unsigned asserts, bool may_wait = true);  // 12.5.2
Fault complete(Core& core);                                                                               // 12.5.2
Fault wait(Core& core);                                                                                   // 12.5.2
Fault test(Core& core, bool& done);                                                                       // 12.5.2
Fault lock(Core& core, std::uint32_t target, sync::LockKind kind, unsigned asserts);                      // 12.5.3
Fault unlock(Core& core, std::uint32_t target);                                                           // 12.5.3
Fault lock_all(Core& core, unsigned asserts);                                                             // 12.5.3
Fault unlock_all(Core& core);                                                                             // 12.5.3
/// The flush calls (12.5.4). Operations by load and store are complete when they return: what is left is order, and
/// waiting for those that an agent executes. All are locally complete when they return.
Fault flush(Core& core, std::uint32_t target);
Fault flush_all(Core& core);
Fault flush_local(Core& core, std::uint32_t target);
Fault flush_local_all(Core& core);
/// Whether operations that give a request may be called: in a lock or lock_all epoch (12.3.5).
Fault may_request(Core& core);
/// After an operation that is still under way to `peer`: the calls that complete it must not take their fast paths.
void left_under_way(Core& core, Peer& peer);
/// Whether the window may be freed now (12.2.5).
Fault may_free(Core& core);

/// MPI_Win_lock, exclusive and without asserts, where nothing stands in the way: a known target, an epoch state that
/// allows it, nobody else at the lock. False, with nothing changed, leaves it all to lock(). kThreaded: whether other
/// threads may be in the window. kDeferring: whether windows of this process defer locks.
template <bool kThreaded, bool kDeferring>
inline bool try_lock(Core& core, std::uint32_t target) {
    if (target >= core.size) return false;
    if (kDeferring && strategy::t_lock_deferred) return false;
    Peer& peer = core.peers[target];
    shm::ControlBlock* const block = peer.block.load(std::memory_order_acquire);
    if (block == nullptr) return false;
    if (kThreaded && !core.state.try_lock()) return false;
    const bool taken =
        core.epoch.access <= Access::Lock && peer.held == Held::None && sync::try_lock_as(block->lock, core.exclusive);
    if (taken) {
        peer.held = Held::Exclusive;
        core.epoch.access = Access::Lock;
        ++core.epoch.locks;
        peer.allow();
    }
    if (kThreaded) core.state.unlock();
    return taken;
}

/// MPI_Win_unlock of an exclusive lock that nobody waits for. No, with nothing changed, leaves it to unlock(); what is
/// neither No nor Yes has released the lock and leaves all the rest to unlock_late(), the window's state too.
template <bool kThreaded>
inline sync::Released try_unlock(Core& core, std::uint32_t target) {
    if (target >= core.size) return sync::Released::No;
    Peer& peer = core.peers[target];
    if (kThreaded && !core.state.try_lock()) return sync::Released::No;
    const sync::Released released = __builtin_expect(peer.held == Held::Exclusive, 1)
                                        ? sync::try_unlock_as(peer.control().lock, core.exclusive)
                                        : sync::Released::No;
    if (__builtin_expect(released == sync::Released::No, 0)) {
        if (kThreaded) core.state.unlock();
        return released;
    }
    if (__builtin_expect(released != sync::Released::Yes, 0)) return released;
    core.epoch.end_lock(peer);
    if (kThreaded) core.state.unlock();
    return sync::Released::Yes;
}
void unlock_late(Core& core, std::uint32_t target, bool threaded);

/// MPI_Win_flush and MPI_Win_flush_local of a target with nothing under way: all that is left to do is order. False
/// leaves it all to flush() or flush_local(). A negative rank is a huge number here.
inline bool may_order_only(const Core& core, std::uint32_t target) {
    return target < core.flushable.load(std::memory_order_relaxed);
}

/// The first operation on a target in an epoch opens it for the fast path of the operations. False if the epoch's state
/// was not what kept it from there, or if the target cannot be opened: the general path then finds the same, and says
/// it.
bool opens(Core& core, std::uint32_t target);

/// After the user got pointers to other processes' memory: an open lock_all must hold their locks from now on, because
/// loads and stores through the pointers are not seen by libosc.
Fault pointers_given(Core& core);

/// Orders everything this thread has done before against everything after, for every observer. A read-modify-write
/// rather than a fence because ThreadSanitizer understands it; and since it counts, it tells when a polling program's
/// host is to be driven: true once in kPollEvery calls, for the caller to call shm::poll_host().
inline constexpr std::uint32_t kPollEvery = 1024;
[[nodiscard]] inline bool order_and_count(Core& core) {
    return core.order.fetch_sub(1, std::memory_order_seq_cst) == 1;
}

/// Drives the host after kPollEvery unlocks, counted by Core::unlocks.
void unlocked_often(Core& core);

/// The same as order_and_count, with the host driven where it is due.
void full_order(Core& core);

}  // namespace osc::epoch
