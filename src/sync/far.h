// Synchronisation with processes on other nodes, as the epochs ask for it. Implemented over the network
// (transport/net): what is asked for travels with the operations, in their order, and is done when the window's
// operations are settled.
#pragma once

#include <cstdint>

#include "diag/fault.h"

namespace osc::sync {

enum class LockKind : std::uint32_t { Shared = 1, Exclusive = 2 };

/// Which ranks of the window's group live; asked only after waiting for long. Called without any lock held.
class Liveness {
  public:
    virtual bool alive(std::uint32_t rank) = 0;

  protected:
    ~Liveness() = default;
};

class Far {
  public:
    /// Asks for the lock of a target; what follows to it happens under that lock. `passing`: a shared lock, asked for
    /// inside a lock_all (see LockContext::inside_lock_all).
    virtual Fault lock(std::uint32_t target, LockKind kind, bool passing) = 0;
    /// Gives it back behind all that was asked for before.
    virtual Fault unlock(std::uint32_t target) = 0;
    /// Tells `origin` that this process has posted.
    virtual Fault post(std::uint32_t origin) = 0;
    /// Tells `target` that this process's operations of the epoch are over, behind them; sends it off.
    virtual Fault complete(std::uint32_t target) = 0;
    /// For the first process of a node: returns when those of all others are here too, or when a process of the window
    /// has died: then its node does not come any more, though the first process there may live.
    virtual Fault barrier(Liveness& liveness) = 0;

  protected:
    ~Far() = default;
};

}  // namespace osc::sync
