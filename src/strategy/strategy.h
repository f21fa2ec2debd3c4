// The synchronisation strategies: WHEN the operations of an epoch are done. Each kind of synchronisation has one
// interface here, each strategy one file beside this one and one line in strategies.def, from which the options, the
// info keys, osc_info and OSC_VERBOSE=strategy follow. docs/STRATEGIES.md compares the strategies.
//
// The epoch room checks that a call is legal, keeps the state of the window's epochs, and asks the window's strategies:
//
//   MPI_Win_fence   FenceStrategy::prepare, runs_ahead, synchronise, conclude
//   MPI_Win_start   PscwStrategy::start
//   MPI_Win_lock    LockStrategy::lock;  lock_all: LockStrategy::lock_all;  unlock: unlocked;  unlock_all: all_unlocked
//   an operation    on_operation of the open epoch's strategy: done now, or queued
//
// A window owns one object of each kind; the fast path never sees them (an open target is one comparison). `guard` is
// the window's state, taken at MPI_THREAD_MULTIPLE: a strategy lets go of it (guard.unlocked) while it waits. To add a
// strategy: docs/CONTRIBUTING.md; tests/strategy has a complete example.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "diag/fault.h"
#include "sync/far.h"

namespace osc {
class Core;
class StateGuard;
struct Peer;
}  // namespace osc

namespace osc::strategy {

/// What becomes of an operation that is legal in the open epoch. Now: the epoch awaits what the target needs (its lock,
/// post or fence) and has the operation done. Queue: the window keeps it until the epoch's strategy has it done.
enum class Decision { Now, Queue };

/// One call of MPI_Win_fence. The asserts are those of the standard (12.5.5), given alike by all processes.
struct FenceCall {
    bool precedes;                       // without MPI_MODE_NOPRECEDE: it closes an epoch
    bool succeeds;                       // without MPI_MODE_NOSUCCEED: it opens one
    bool used;                           // the epoch that it closes had operations of this process
    std::vector<std::uint32_t> targets;  // of these operations, each once

    /// Nothing before and nothing after: nothing to order.
    bool is_empty() const { return !precedes && !succeeds; }
};

/// MPI_Win_fence. All processes of a window use the same strategy, and call its functions in the order below.
class FenceStrategy {
  public:
    virtual ~FenceStrategy() = default;
    /// As in strategies.def.
    virtual const char* name() const = 0;
    /// What `name` means in this window, for OSC_VERBOSE=strategy; "" if the name says it.
    virtual std::string explain(const Core&) const { return ""; }
    /// Does what must be done while the epoch that the fence closes is still open.
    virtual void prepare(Core&, StateGuard&, const FenceCall&) {}
    /// Whether this process may leave the fence before a neighbour on the node has made it: operations on the
    /// neighbour then await the neighbour's fence. With the state held, like conclude().
    virtual bool runs_ahead(const Core&, const FenceCall&) const = 0;
    /// Completes the epoch's operations of this process and waits for what the strategy has to wait for. Returns false
    /// if a process died, so that there can be no further fence; `late` is the first fault of an operation. Not called
    /// for an empty fence. Without the state.
    virtual bool synchronise(Core&, const FenceCall&, Fault& late) = 0;
    /// Whether messages of other nodes that come behind their fence of this number wait here for this process's fence.
    virtual bool opens_early(const Core&) const { return false; }
    /// Learns from the fence; not called for an empty one.
    virtual void conclude(Core&, const FenceCall&) {}
    virtual Decision on_operation(const Core&, const Peer&) const { return Decision::Now; }
    /// False if the window's operations may be queued, which the fast paths do not look for.
    virtual bool allows_fast_paths() const { return true; }
};

/// MPI_Win_start and MPI_Win_complete. Each process chooses for itself; MPI_Win_post and MPI_Win_wait do not depend on
/// it.
class PscwStrategy {
  public:
    virtual ~PscwStrategy() = default;
    virtual const char* name() const = 0;
    virtual std::string explain(const Core&) const { return ""; }
    /// MPI_Win_start of these targets, whose epoch is open. MPI_Win_complete awaits every post that nothing has awaited
    /// before, and has done what is queued. With the state.
    virtual void start(Core&, StateGuard&, std::span<const std::uint32_t>) {}
    virtual Decision on_operation(const Core&, const Peer&) const { return Decision::Now; }
    virtual bool allows_fast_paths() const { return true; }
};

/// MPI_Win_lock and MPI_Win_lock_all, without MPI_MODE_NOCHECK. Each process chooses for itself, but for two-level
/// locks.
class LockStrategy {
  public:
    virtual ~LockStrategy() = default;
    virtual const char* name() const = 0;
    virtual std::string explain(const Core&) const { return ""; }
    /// MPI_Win_lock: acquires the lock of `peer`, or notes (defer_lock) that it is acquired later. Sets Peer::held.
    virtual Fault lock(Core&, StateGuard&, Peer& peer, sync::LockKind) = 0;
    /// MPI_Win_lock_all. Acquires what must be held when the call returns; nothing if it fails.
    virtual Fault lock_all(Core&, StateGuard&) = 0;
    /// Acquires the lock of a target that an open lock_all needs now.
    virtual Fault lock_one_of_all(Core&, StateGuard&, Peer& peer) = 0;
    /// The lock that `target` was locked with has been given up by this process; its operations have ended.
    virtual Fault unlocked(Core&, StateGuard&, std::uint32_t /*target*/, sync::LockKind) { return Fault::None; }
    virtual Fault all_unlocked(Core&, StateGuard&) { return Fault::None; }
    virtual Decision on_operation(const Core&, const Peer&) const { return Decision::Now; }
    /// Whether lock() may return before the lock is acquired. Constant for a window.
    virtual bool may_defer(const Core&) const = 0;
    virtual bool allows_fast_paths() const { return true; }
};

/// A window's strategies.
struct Strategies {
    std::unique_ptr<FenceStrategy> fence;
    std::unique_ptr<PscwStrategy> pscw;
    std::unique_ptr<LockStrategy> lock;

    /// Those of every kind's first line in strategies.def: auto.
    Strategies();
    bool allow_fast_paths() const {
        return fence->allows_fast_paths() && pscw->allows_fast_paths() && lock->allows_fast_paths();
    }
};

/// The kinds of synchronisation that have strategies.
enum class Kind { Fence, Pscw, Lock };

/// One line of strategies.def.
struct Entry {
    const char* name;
    const char* help;
};
/// The lines of a kind, in the order of the table: the number of a strategy is its place there.
std::span<const Entry> entries(Kind kind);
/// The number of the strategy of this name, or -1.
int find(Kind kind, const char* name);
std::unique_ptr<FenceStrategy> make_fence(int number);
std::unique_ptr<PscwStrategy> make_pscw(int number);
std::unique_ptr<LockStrategy> make_lock(int number);
/// The strategy of windows with the two-level scheme (OSC_LOCK_SCHEME), whatever OSC_LOCK says.
std::unique_ptr<LockStrategy> make_two_level_lock();

}  // namespace osc::strategy
