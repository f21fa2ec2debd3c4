// The synchronisation strategies decide WHEN the operations of an epoch are performed. Each kind of synchronisation has
// one interface here. Each strategy has one file beside this one and, but for two-level locks, one line in
// strategies.def: the values of options and info keys, and what osc_info lists, come from that table.
// docs/STRATEGIES.md compares the strategies.
//
// The other files of src/core check that a call is legal, keep the state of the window's epochs, and ask its
// strategies:
//
//   MPI_Win_fence   FenceStrategy::prepare, runs_ahead, synchronise, opens_early, conclude
//   MPI_Win_start   PscwStrategy::start
//   MPI_Win_lock    LockStrategy::lock;  lock_all: LockStrategy::lock_all;  unlock: unlocked;  unlock_all: all_unlocked
//   an operation    on_operation of the open epoch's strategy: perform it now, or queue it
//
// A window owns one object of each kind. The fast path never calls them: it tests an open target with one comparison.
// `guard` is the window's state lock, taken at MPI_THREAD_MULTIPLE: a strategy releases it (guard.unlocked) while it
// waits. To add a strategy: docs/CONTRIBUTING.md; tests/strategy has a complete example.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fault.h"
#include "sync/remote_sync.h"

namespace osc {
class Core;
class StateGuard;
struct Target;
}  // namespace osc

namespace osc::strategy {

/// The decision on an operation that is legal in the open epoch. Now: the epoch awaits the target's lock, post or fence
/// and performs the operation. Queue: the window queues it until the epoch's strategy performs it.
enum class Decision { Now, Queue };

/// One call of MPI_Win_fence. All processes give the same asserts (MPI 4.1 section 12.5.5).
struct FenceCall {
    bool precedes;                       // without MPI_MODE_NOPRECEDE: it closes an epoch
    bool succeeds;                       // without MPI_MODE_NOSUCCEED: it opens one
    bool used;                           // the epoch that it closes had operations of this process
    std::vector<std::uint32_t> targets;  // of these operations, each once

    /// The fence neither closes nor opens an epoch, so it orders nothing.
    bool is_empty() const { return !precedes && !succeeds; }
};

/// What strategies of each kind have.
class Strategy {
  public:
    virtual ~Strategy() = default;
    /// The name in strategies.def.
    virtual const char* name() const = 0;
    /// What the strategy does in this window, for OSC_VERBOSE=strategy; "" if the name says it.
    virtual std::string explain(const Core&) const { return ""; }
    virtual Decision on_operation(const Core&, const Target&) const { return Decision::Now; }
    /// False if operations may be queued: the fast paths ignore the queue.
    virtual bool allows_fast_paths() const { return true; }
    /// Whether small updates of an epoch may be batched (core/epoch.h), where fast paths are allowed.
    virtual bool allows_batches() const { return true; }
};

/// MPI_Win_fence. All processes of a window use the same strategy, and call its functions in the order below.
class FenceStrategy : public Strategy {
  public:
    /// Called while the epoch that the fence closes is still open.
    virtual void prepare(Core&, StateGuard&, const FenceCall&) {}
    /// Whether this process may leave the fence before another process of the node has made it. Operations on that
    /// process then await its fence. The caller holds the state lock, as for conclude().
    virtual bool runs_ahead(const Core&, const FenceCall&) const = 0;
    /// Completes this process's operations of the epoch and waits as the strategy requires. Returns false if a process
    /// died: no further fence can complete then. `late` is the first fault of an operation. Not called for an empty
    /// fence. The caller does not hold the state lock.
    virtual bool synchronise(Core&, const FenceCall&, Fault& late) = 0;
    /// Whether a process on another node may send operations of the next epoch before this process has made the fence.
    /// This process then delays their messages until it has.
    virtual bool opens_early(const Core&) const { return false; }
    /// Called at the end of a fence that is not empty.
    virtual void conclude(Core&, const FenceCall&) {}
};

/// MPI_Win_start and MPI_Win_complete. Each process may use another strategy; MPI_Win_post and MPI_Win_wait do not
/// depend on it.
class PscwStrategy : public Strategy {
  public:
    /// Called by MPI_Win_start with its targets; the epoch is open. MPI_Win_complete awaits the remaining posts and
    /// performs queued operations. The caller holds the state lock.
    virtual void start(Core&, StateGuard&, std::span<const std::uint32_t>) {}
};

/// MPI_Win_lock and MPI_Win_lock_all, without MPI_MODE_NOCHECK. Each process may use another strategy, except with
/// two-level locks.
class LockStrategy : public Strategy {
  public:
    /// MPI_Win_lock: acquires the lock of `target`, or defers it (LockOrder). Sets Target::held_lock.
    virtual Fault lock(Core&, StateGuard&, Target& target, sync::LockKind) = 0;
    /// MPI_Win_lock_all. Acquires the locks that the process must hold when the call returns; none if it fails. Here:
    /// those of memory that the program may load and store.
    virtual Fault lock_all(Core&, StateGuard&);
    /// Acquires the lock of a target that an open lock_all needs now: the first operation there does.
    virtual Fault lock_one_of_all(Core&, StateGuard&, Target& target);
    /// Called after this process's operations at `rank` are complete and its lock there is no longer held.
    virtual Fault unlocked(Core&, StateGuard&, std::uint32_t /*rank*/, sync::LockKind) { return Fault::None; }
    virtual Fault all_unlocked(Core&, StateGuard&) { return Fault::None; }
    /// Whether lock() may return before the lock is acquired. Constant for a window.
    virtual bool may_defer(const Core&) const = 0;
};

/// A window's strategies.
struct Strategies {
    std::unique_ptr<FenceStrategy> fence;
    std::unique_ptr<PscwStrategy> pscw;
    std::unique_ptr<LockStrategy> lock;

    /// The first strategy of each kind in strategies.def: auto.
    Strategies();
    /// The strategy of the open epoch; null if none is, or a fence's that no operation has used.
    const Strategy* of_epoch(const Core& core) const;
    bool allow_fast_paths() const {
        return fence->allows_fast_paths() && pscw->allows_fast_paths() && lock->allows_fast_paths();
    }
};

/// The kinds of synchronisation that have strategies.
enum class SyncKind { Fence, Pscw, Lock };

/// One line of strategies.def.
struct Entry {
    const char* name;
    const char* help;
};
/// The lines of a kind, in the order of the table; the index of a line is the strategy's number.
std::span<const Entry> entries(SyncKind kind);
/// The number of the strategy of this name, or -1.
int find(SyncKind kind, const char* name);
std::unique_ptr<FenceStrategy> make_fence(int number);
std::unique_ptr<PscwStrategy> make_pscw(int number);
std::unique_ptr<LockStrategy> make_lock(int number);
/// The strategy of windows with the two-level scheme (OSC_DEBUG=lock_scheme); OSC_LOCK does not matter there.
/// `allows_batches`: of the strategy that the user wants.
std::unique_ptr<LockStrategy> make_two_level_lock(bool allows_batches);

}  // namespace osc::strategy
