// Opening targets for operations, now or later.
#include "strategy/targets.h"

#include "epoch/epoch.h"

namespace osc::epoch {
namespace {

using diag::fail;

// What the strategy of the open epoch, which allows operations on `peer`, decides.
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

Fault open_target(Core& core, Peer& peer, bool* later) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    switch (epoch.access) {
        case Access::None:
            return fail(Fault::Sync, "no access epoch is open; open one with fence, start, lock or lock_all first");
        case Access::Fence:
            epoch.access = Access::FenceUsed;
            break;
        case Access::Lock:
            if (peer.held == Held::None)
                return fail(Fault::Sync, "rank %u is not locked; lock it before the operation", peer.rank);
            if (!strategy::is_later(peer.held) && !core.has_put_off(peer.rank)) return Fault::None;
            break;
        case Access::LockAll:
            if (peer.held != Held::None && !core.has_put_off(peer.rank)) return Fault::None;
            break;
        case Access::Start:
            if (!peer.started)
                return fail(Fault::Sync, "rank %u is not in the group given to MPI_Win_start", peer.rank);
            break;
        case Access::FenceUsed:
            break;
    }
    if (later != nullptr && decide(core, peer) == strategy::Decision::Queue) {
        if (epoch.access != Access::Lock) epoch.note(peer);
        *later = true;
        return Fault::None;
    }
    return strategy::make_open(core, guard, peer);
}

bool opens(Core& core, std::uint32_t target) {
    if (target >= core.size) return false;
    Peer& peer = core.peer(target);
    if (peer.full_reach == 0 || peer.reach.load(std::memory_order_relaxed) != 0) return false;
    bool later = false;
    return open_target(core, peer, &later) == Fault::None && !later;
}

}  // namespace osc::epoch
