// What strategies have unless they say otherwise: lock_all over queued locks.
#include "core/core.h"
#include "core/targets.h"

namespace osc::strategy {

Fault LockStrategy::lock_one_of_all(Core& core, StateGuard& guard, Target& target) {
    return acquire(core, guard, target, sync::LockKind::Shared, true);
}

Fault LockStrategy::lock_all(Core& core, StateGuard& guard) {
    if (!core.pointers_given) {
        Target& own = core.target(core.me);
        if (const Fault fault = acquire(core, guard, own, sync::LockKind::Shared); fault != Fault::None) return fault;
        core.epoch.touch(own);
        return Fault::None;
    }
    const Fault fault = acquire_all_local(core, guard);
    if (fault == Fault::None) return fault;
    // No epoch is open whose end would release these locks.
    for (const std::uint32_t rank : core.epoch.touched)
        drop(core, core.target(rank));
    core.epoch.touched.clear();
    return fault;
}

const Strategy* Strategies::of_epoch(const Core& core) const {
    switch (core.epoch.access) {
        case Access::None:
        case Access::Fence:
            break;
        case Access::FenceUsed:
            return fence.get();
        case Access::Lock:
        case Access::LockAll:
            return lock.get();
        case Access::Start:
            return pscw.get();
    }
    return nullptr;
}

}  // namespace osc::strategy
