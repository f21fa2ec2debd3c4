// Two-level locks (sync/two_level.h, F3): each call has what it asks for when it returns, and operations go as under
// MPI_MODE_NOCHECK. lock_all is one atomic, whatever the number of targets.
#include <utility>

#include "strategy/core.h"
#include "strategy/registry.h"

namespace osc::strategy {
namespace {

class TwoLevelLock final : public LockStrategy {
  public:
    const char* name() const override { return "two_level"; }

    Fault lock(Core& core, StateGuard& guard, Peer& peer, sync::LockKind kind) override {
        const Fault fault = guard.unlocked([&] { return core.two_level->lock(peer.rank, kind); });
        if (fault == Fault::None) peer.held = kind == sync::LockKind::Shared ? Held::SharedWord : Held::ExclusiveWord;
        return fault;
    }

    Fault lock_all(Core& core, StateGuard& guard) override {
        const Fault fault = guard.unlocked([&] { return core.two_level->lock_all(); });
        if (fault == Fault::None) core.epoch.no_check = core.epoch.two_level_lock_all = true;
        return fault;
    }

    // lock_all holds all of them.
    Fault lock_one_of_all(Core&, StateGuard&, Peer&) override { return Fault::None; }

    // By one thread, after all that was done under the lock has ended.
    Fault unlocked(Core& core, StateGuard& guard, std::uint32_t target, sync::LockKind kind) override {
        return guard.unlocked([&] { return core.two_level->unlock(target, kind); });
    }
    Fault all_unlocked(Core& core, StateGuard& guard) override {
        if (!std::exchange(core.epoch.two_level_lock_all, false)) return Fault::None;
        return guard.unlocked([&] { return core.two_level->unlock_all(); });
    }

    bool may_defer(const Core&) const override { return false; }
};

}  // namespace

std::unique_ptr<LockStrategy> make_two_level_lock() {
    return std::make_unique<TwoLevelLock>();
}

}  // namespace osc::strategy
