// MPI_Win_lock acquires the locks of local targets. The message that carries the operations requests the lock of a
// remote target, and its reply grants it.
#include "core/core.h"
#include "core/lock_order.h"
#include "core/strategies/registry.h"
#include "core/targets.h"

namespace osc::strategy {
namespace {

class AutomaticLock final : public LockStrategy {
  public:
    const char* name() const override { return "auto"; }
    std::string explain(const Core& core) const override {
        return core.remote_sync != nullptr ? "immediate on this node, deferred to others: one message"
                                           : "immediate, on one node";
    }

    Fault lock(Core& core, StateGuard& guard, Target& target, sync::LockKind kind) override {
        const Fault fault = acquire(core, guard, target, kind);
        if (fault == Fault::None && !core.is_local(target.rank))
            core.lock_order->defer_or_await(core, guard, target.rank);
        return fault;
    }

    bool may_defer(const Core& core) const override { return core.remote_sync != nullptr; }
};

}  // namespace

std::unique_ptr<LockStrategy> make_lock_auto() {
    return std::make_unique<AutomaticLock>();
}

}  // namespace osc::strategy
