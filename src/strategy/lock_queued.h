// What the strategies over queued locks share: lock_all acquires the lock of a target with the first operation there,
// but for memory that the program may load and store without libosc.
#pragma once

#include "strategy/strategy.h"

namespace osc::strategy {

class QueuedLock : public LockStrategy {
  public:
    Fault lock_all(Core& core, StateGuard& guard) override;
    Fault lock_one_of_all(Core& core, StateGuard& guard, Peer& peer) override;
};

}  // namespace osc::strategy
