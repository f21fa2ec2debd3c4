// MPI_Win_lock acquires no lock on this node, and the window queues operations. Unlock or flush acquires the lock and
// performs the operations; without operations the lock is never acquired. MPI_Win_lock does acquire the lock of memory
// that the program may load and store, in windows that queue nothing, and beside other threads of the program. To a
// target on another node lock, operations and unlock travel as one message, also without operations.
#include "strategy/core.h"
#include "strategy/deferred_lock.h"
#include "strategy/lock_queued.h"
#include "strategy/registry.h"
#include "strategy/targets.h"

namespace osc::strategy {
namespace {

class DeferredLocks final : public QueuedLock {
  public:
    const char* name() const override { return "deferred"; }

    Fault lock(Core& core, StateGuard& guard, Peer& peer, sync::LockKind kind) override {
        const bool local = core.is_local(peer.rank);
        const bool queues = local && peer.rank != core.me && !core.pointers_given && core.can_defer();
        if (queues && core.lock_order->may_defer(core)) {
            peer.held_lock = kind == sync::LockKind::Shared ? HeldLock::SharedDeferred : HeldLock::ExclusiveDeferred;
            core.lock_order->defer(core, peer.rank);
            return Fault::None;
        }
        const Fault fault = acquire(core, guard, peer, kind);
        if (fault == Fault::None && !local) core.lock_order->defer_or_await(core, guard, peer.rank);
        return fault;
    }

    // RemoteSync gathers the operations on a remote target in one message anyway.
    Decision on_operation(const Core& core, const Peer& peer) const override {
        const bool all = core.epoch.access == Access::LockAll;
        const bool later = all ? peer.held_lock == HeldLock::None && !core.epoch.no_check && core.is_local(peer.rank)
                               : is_deferred(peer.held_lock);
        return later ? Decision::Queue : Decision::Now;
    }

    bool may_defer(const Core& core) const override { return core.remote_sync != nullptr || core.can_defer(); }
    bool allows_fast_paths() const override { return false; }
};

}  // namespace

std::unique_ptr<LockStrategy> make_lock_deferred() {
    return std::make_unique<DeferredLocks>();
}

}  // namespace osc::strategy
