// MPI_Win_lock acquires no lock on this node, and the window queues operations. Unlock or flush acquires the lock and
// performs the operations; without operations the lock is never acquired. MPI_Win_lock does acquire the lock of memory
// that the program may load and store, in windows that queue nothing, and beside other threads of the program. To a
// target on another node lock, operations and unlock travel as one message, also without operations.
#include "core/core.h"
#include "core/lock_order.h"
#include "core/strategies/registry.h"
#include "core/targets.h"

namespace osc::strategy {
namespace {

class DeferredLocks final : public LockStrategy {
  public:
    const char* name() const override { return "deferred"; }

    Fault lock(Core& core, StateGuard& guard, Target& target, sync::LockKind kind) override {
        const bool local = core.is_local(target.rank);
        const bool queues = local && target.rank != core.me && !core.pointers_given && core.can_defer;
        if (queues && core.lock_order->may_defer(core)) {
            target.held_lock = kind == sync::LockKind::Shared ? HeldLock::SharedDeferred : HeldLock::ExclusiveDeferred;
            core.lock_order->defer(core, target.rank);
            return Fault::None;
        }
        const Fault fault = acquire(core, guard, target, kind);
        if (fault == Fault::None && !local) core.lock_order->defer_or_await(core, guard, target.rank);
        return fault;
    }

    // RemoteSync gathers the operations on a remote target in one message anyway.
    Decision on_operation(const Core& core, const Target& target) const override {
        const bool all = core.epoch.access == Access::LockAll;
        const bool later =
            all ? target.held_lock == HeldLock::None && !core.epoch.no_check && core.is_local(target.rank)
                : is_deferred(target.held_lock);
        return later ? Decision::Queue : Decision::Now;
    }

    bool may_defer(const Core& core) const override { return core.remote_sync != nullptr || core.can_defer; }
    bool allows_fast_paths() const override { return false; }
};

}  // namespace

std::unique_ptr<LockStrategy> make_lock_deferred() {
    return std::make_unique<DeferredLocks>();
}

}  // namespace osc::strategy
