// Opens targets for operations.
#include "core/epoch.h"
#include "core/simple.h"
#include "core/targets.h"

namespace osc::epoch {

using base::fail;

Fault open_target(Core& core, Target& target, bool* deferred) {
    StateGuard guard(core);
    Epoch& epoch = core.epoch;
    if (target.is_in_run()) leave_batch(core, target);
    switch (epoch.access) {
        case Access::None:
            return fail(Fault::Sync, "no access epoch is open; open one with fence, start, lock or lock_all first");
        case Access::Fence:
            epoch.access = Access::FenceUsed;
            break;
        case Access::Lock:
            if (target.held_lock == HeldLock::None)
                return fail(Fault::Sync, "rank %u is not locked; lock it before the operation", target.rank);
            if (!strategy::is_deferred(target.held_lock) && !core.has_deferred(target.rank)) return Fault::None;
            break;
        case Access::LockAll:
            if (target.held_lock != HeldLock::None && !core.has_deferred(target.rank)) return Fault::None;
            break;
        case Access::Start:
            if (!target.started)
                return fail(Fault::Sync, "rank %u is not in the group given to MPI_Win_start", target.rank);
            break;
        case Access::FenceUsed:
            break;
    }
    if (deferred != nullptr &&
        core.strategies.of_epoch(core)->on_operation(core, target) == strategy::Decision::Queue) {
        if (epoch.access != Access::Lock) epoch.note(target);
        *deferred = true;
        return Fault::None;
    }
    return strategy::make_open(core, guard, target);
}

bool opens(Core& core, std::uint32_t rank) {
    if (rank >= core.size) return false;
    Target& target = core.target(rank);
    if (target.full_limit == 0 || target.fast_limit.load(std::memory_order_relaxed) != 0) return false;
    bool deferred = false;
    return open_target(core, target, &deferred) == Fault::None && !deferred;
}

}  // namespace osc::epoch
