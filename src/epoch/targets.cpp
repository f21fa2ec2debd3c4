// Opens targets for operations.
#include "strategy/targets.h"

#include "epoch/epoch.h"
#include "epoch/simple.h"

namespace osc::epoch {
namespace {

using base::fail;

// The decision of the open epoch's strategy.
strategy::Decision decide(const Core& core, const Peer& peer) {
    switch (core.epoch.access) {
        case Access::None:
        case Access::Fence:
            break;
        case Access::FenceUsed:
            return core.strategies.fence->on_operation(core, peer);
        case Access::Lock:
        case Access::LockAll:
            return core.strategies.lock->on_operation(core, peer);
        case Access::Start:
            return core.strategies.pscw->on_operation(core, peer);
    }
    return strategy::Decision::Now;
}

}  // namespace

Fault open_target(Core& core, Peer& peer, bool* deferred) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (peer.is_in_run()) leave_batch(core, peer);
    switch (epoch.access) {
        case Access::None:
            return fail(Fault::Sync, "no access epoch is open; open one with fence, start, lock or lock_all first");
        case Access::Fence:
            epoch.access = Access::FenceUsed;
            break;
        case Access::Lock:
            if (peer.held_lock == HeldLock::None)
                return fail(Fault::Sync, "rank %u is not locked; lock it before the operation", peer.rank);
            if (!strategy::is_deferred(peer.held_lock) && !core.has_deferred(peer.rank)) return Fault::None;
            break;
        case Access::LockAll:
            if (peer.held_lock != HeldLock::None && !core.has_deferred(peer.rank)) return Fault::None;
            break;
        case Access::Start:
            if (!peer.started)
                return fail(Fault::Sync, "rank %u is not in the group given to MPI_Win_start", peer.rank);
            break;
        case Access::FenceUsed:
            break;
    }
    if (deferred != nullptr && decide(core, peer) == strategy::Decision::Queue) {
        if (epoch.access != Access::Lock) epoch.note(peer);
        *deferred = true;
        return Fault::None;
    }
    return strategy::make_open(core, guard, peer);
}

bool opens(Core& core, std::uint32_t target) {
    if (target >= core.size) return false;
    Peer& peer = core.peer(target);
    if (peer.full_limit == 0 || peer.fast_limit.load(std::memory_order_relaxed) != 0) return false;
    bool deferred = false;
    return open_target(core, peer, &deferred) == Fault::None && !deferred;
}

}  // namespace osc::epoch
