// Synchronisation with processes on other nodes, as the epochs ask for it. Implemented over the network
// (transport/net): what is asked for travels with the operations, in their order, and is done when the window's
// operations are settled.
#pragma once

#include <cstdint>
#include <map>

#include "diag/fault.h"
#include "sync/costs.h"

namespace osc::sync {

enum class LockKind : std::uint32_t { Shared = 1, Exclusive = 2 };

/// Which ranks of the window's group live; asked only after waiting for long. Called without any lock held.
class Liveness {
  public:
    virtual bool alive(std::uint32_t rank) = 0;

  protected:
    ~Liveness() = default;
};

/// What the nodes tell each other at a fence.
struct News {
    std::map<std::uint32_t, std::uint32_t> closes;  // by target: how many of other nodes have ended an epoch to it
    std::uint32_t wants = 0;                        // what the next epoch should be: Want, of some process each

    void add(const News& more) {
        wants |= more.wants;
        for (const auto& [target, count] : more.closes)
            closes[target] += count;
    }
};

class Far {
  public:
    /// Asks for the lock of a target; what follows to it happens under that lock. `passing`: a shared lock, asked for
    /// inside a lock_all (see LockContext::inside_lock_all).
    virtual Fault lock(std::uint32_t target, LockKind kind, bool passing) = 0;
    /// Waits until the lock of a target that was asked for is held, or is known not to be had: that is then an error of
    /// the next call that settles operations there. Thread-safe; blocks nobody else.
    virtual Fault await_lock(std::uint32_t target) = 0;
    /// Gives it back behind all that was asked for before.
    virtual Fault unlock(std::uint32_t target) = 0;
    /// Tells `origin` that this process has posted.
    virtual Fault post(std::uint32_t origin) = 0;
    /// Tells `target` that this process's operations of the epoch are over, behind them; sends it off.
    virtual Fault complete(std::uint32_t target) = 0;
    /// Tells `target` that this process's operations of a fence's epoch are over, behind them; sends it off or, `held`,
    /// leaves that to the barrier which this process is about to call.
    virtual Fault close(std::uint32_t target, bool held) = 0;
    /// This process has made a fence: what others have sent behind theirs may be done. `ahead`: others may not have
    /// made it yet; what this process sends them from now on waits there until they have.
    virtual void opened(std::uint64_t fence, bool ahead) = 0;
    /// Waits until close() has come here so often since the window was made; false if a process of the window died.
    virtual bool await_closes(std::uint64_t closes, Liveness& liveness) = 0;
    /// After a failure: results that are under way are for nobody any more, their buffers are the user's.
    virtual void forget_results() = 0;
    /// What this process has sent to other nodes since the last time.
    virtual Traffic take_traffic() = 0;
    /// For the first process of a node: returns when those of all others are here too, or when a process of the window
    /// has died: then its node does not come any more, though the first process there may live. `news`: what this
    /// node's processes have to tell; on return what all others have told of those of this node.
    virtual Fault barrier(Liveness& liveness, News& news) = 0;

  protected:
    ~Far() = default;
};

}  // namespace osc::sync
