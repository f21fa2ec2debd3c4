// MPI_Win_lock acquires nothing: operations are queued, and unlock or flush acquires the lock, has the operations done
// and, for targets of other nodes, sends lock, operations and unlock as one message (G5). A lock with no operations
// under it is never acquired. Memory that the program may load and store is locked by the call.
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
        const bool far = !core.here(peer.rank);
        if (!far && (peer.rank == core.me || core.pointers_given || !core.puts_off()))
            return acquire(core, guard, peer, kind);
        if (far) {
            if (const Fault fault = acquire(core, guard, peer, kind); fault != Fault::None) return fault;
        } else {
            peer.held = kind == sync::LockKind::Shared ? Held::SharedLater : Held::ExclusiveLater;
        }
        defer_lock(core, peer.rank);
        return Fault::None;
    }

    // What goes to other nodes is gathered there in one message anyway.
    Decision on_operation(const Core& core, const Peer& peer) const override {
        const bool all = core.epoch.access == Access::LockAll;
        const bool later =
            all ? peer.held == Held::None && !core.epoch.no_check && core.here(peer.rank) : is_later(peer.held);
        return later ? Decision::Queue : Decision::Now;
    }

    bool may_defer(const Core& core) const override { return core.far_sync != nullptr || core.puts_off(); }
    bool allows_fast_paths() const override { return false; }
};

}  // namespace

std::unique_ptr<LockStrategy> make_lock_deferred() {
    return std::make_unique<DeferredLocks>();
}

}  // namespace osc::strategy
