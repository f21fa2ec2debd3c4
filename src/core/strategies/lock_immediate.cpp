// MPI_Win_lock holds the lock when it returns.
#include "core/core.h"
#include "core/strategies/registry.h"
#include "core/targets.h"

namespace osc::strategy {
namespace {

class ImmediateLock final : public LockStrategy {
  public:
    const char* name() const override { return "immediate"; }
    bool allows_batches() const override { return false; }

    Fault lock(Core& core, StateGuard& guard, Target& target, sync::LockKind kind) override {
        return acquire_and_await(core, guard, target, kind, false);
    }
    Fault lock_one_of_all(Core& core, StateGuard& guard, Target& target) override {
        return acquire_and_await(core, guard, target, sync::LockKind::Shared, true);
    }

    bool may_defer(const Core&) const override { return false; }

  private:
    // The first reply grants the lock of a remote target. On a fault the request is taken back with an unlock.
    static Fault acquire_and_await(Core& core, StateGuard& guard, Target& target, sync::LockKind kind,
                                   bool inside_lock_all) {
        const Fault asked = acquire(core, guard, target, kind, inside_lock_all);
        if (asked != Fault::None || core.is_local(target.rank) || target.held_lock == HeldLock::NoCheck) return asked;
        base::FirstFault first;
        first.note(guard.unlocked([&] { return core.complete_ops(target.rank); }));
        if (!first.is_set()) return Fault::None;
        guard.unlocked([&] {
            core.remote_sync->unlock(target.rank);
            return core.complete_ops(target.rank);
        });
        target.held_lock = HeldLock::None;
        return first.take();
    }
};

}  // namespace

std::unique_ptr<LockStrategy> make_lock_immediate() {
    return std::make_unique<ImmediateLock>();
}

}  // namespace osc::strategy
