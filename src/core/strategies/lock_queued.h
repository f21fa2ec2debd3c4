// lock_all of the strategies over queued locks: the first operation on a target acquires its lock. The locks of memory
// that the program may load and store are acquired by lock_all itself.
#pragma once

#include "core/strategies/strategy.h"

namespace osc::strategy {

class QueuedLock : public LockStrategy {
  public:
    Fault lock_all(Core& core, StateGuard& guard) override;
    Fault lock_one_of_all(Core& core, StateGuard& guard, Target& target) override;
};

}  // namespace osc::strategy
