// Two-level locks (sync/two_level.h): each call holds its locks when it returns, and operations run as with
// MPI_MODE_NOCHECK. lock_all is one atomic, whatever the number of targets.
// Build: osc_core_cold
#include <utility>

#include "core/core.h"
#include "core/strategies/registry.h"

namespace osc::strategy {
namespace {

class TwoLevelLock final : public LockStrategy {
  public:
    explicit TwoLevelLock(bool allows_batches) : allows_batches_(allows_batches) {}

    const char* name() const override { return "two_level"; }
    bool allows_batches() const override { return allows_batches_; }

    Fault lock(Core& core, StateGuard& guard, Target& target, sync::LockKind kind) override {
        const Fault fault = guard.unlocked([&] { return core.two_level->lock(target.rank, kind); });
        if (fault == Fault::None)
            target.held_lock = kind == sync::LockKind::Shared ? HeldLock::SharedTwoLevel : HeldLock::ExclusiveTwoLevel;
        return fault;
    }

    Fault lock_all(Core& core, StateGuard& guard) override {
        const Fault fault = guard.unlocked([&] { return core.two_level->lock_all(); });
        if (fault == Fault::None) core.epoch.no_check = core.epoch.two_level_lock_all = true;
        return fault;
    }

    // lock_all() has acquired the locks of all targets.
    Fault lock_one_of_all(Core&, StateGuard&, Target&) override { return Fault::None; }

    // One thread calls this, after the operations under the lock are complete.
    Fault unlocked(Core& core, StateGuard& guard, std::uint32_t rank, sync::LockKind kind) override {
        return guard.unlocked([&] { return core.two_level->unlock(rank, kind); });
    }
    Fault all_unlocked(Core& core, StateGuard& guard) override {
        if (!std::exchange(core.epoch.two_level_lock_all, false)) return Fault::None;
        return guard.unlocked([&] { return core.two_level->unlock_all(); });
    }

    bool may_defer(const Core&) const override { return false; }

  private:
    const bool allows_batches_;
};

}  // namespace

std::unique_ptr<LockStrategy> make_two_level_lock(bool allows_batches) {
    return std::make_unique<TwoLevelLock>(allows_batches);
}

}  // namespace osc::strategy
