// Every lock is held when the call that asks for it returns (G5).
#include <string>

#include "strategy/core.h"
#include "strategy/lock_queued.h"
#include "strategy/registry.h"
#include "strategy/targets.h"

namespace osc::strategy {
namespace {

class ImmediateLock final : public QueuedLock {
  public:
    const char* name() const override { return "immediate"; }

    Fault lock(Core& core, StateGuard& guard, Peer& peer, sync::LockKind kind) override {
        return acquire_and_await(core, guard, peer, kind, false);
    }
    Fault lock_one_of_all(Core& core, StateGuard& guard, Peer& peer) override {
        return acquire_and_await(core, guard, peer, sync::LockKind::Shared, true);
    }

    bool may_defer(const Core&) const override { return false; }

  private:
    // A lock of another node is held with the first reply, or given back, whatever the fault is.
    static Fault acquire_and_await(Core& core, StateGuard& guard, Peer& peer, sync::LockKind kind,
                                   bool inside_lock_all) {
        const Fault asked = acquire(core, guard, peer, kind, inside_lock_all);
        if (asked != Fault::None || core.here(peer.rank) || peer.held == Held::NoCheck) return asked;
        const Fault fault = guard.unlocked([&] { return core.settle(peer.rank); });
        if (fault == Fault::None) return fault;
        const std::string text = diag::fault_text();
        guard.unlocked([&] {
            static_cast<void>(core.far_sync->unlock(peer.rank));
            return core.settle(peer.rank);
        });
        peer.held = Held::None;
        return diag::fail(fault, "%s", text.c_str());
    }
};

}  // namespace

std::unique_ptr<LockStrategy> make_lock_immediate() {
    return std::make_unique<ImmediateLock>();
}

}  // namespace osc::strategy
