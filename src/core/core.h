// The part of a window that does not know MPI: its targets, its control table in shared memory, and the state of its
// epochs. Epochs and strategies depend on this part only, so that unit tests can run them with ranks as threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/assert.h"
#include "base/fault.h"
#include "core/strategies/strategy.h"
#include "op/queue.h"
#include "reach/reach.h"
#include "shm/compare.h"
#include "shm/control.h"
#include "stats/counters.h"
#include "sync/lock.h"
#include "sync/remote_sync.h"
#include "sync/two_level.h"

namespace osc {

namespace strategy {
class LockOrder;
extern LockOrder g_lock_order;  // of this process
}  // namespace strategy
namespace check {
class Ledger;
}

/// The access epoch of a process at a window. After a fence the state is Fence until the first operation, and FenceUsed
/// from then on: in Fence, lock, start and post are still legal (MPI 4.1 section 12.5.1). MPI_Win_lock is legal in the
/// first three states.
enum class Access : std::uint8_t { None, Fence, Lock, FenceUsed, Start, LockAll };

struct Epoch {
    Access access = Access::None;
    bool no_check = false;               // the open start or lock_all has MPI_MODE_NOCHECK
    bool two_level_lock_all = false;     // the open lock_all holds the global word of the two-level scheme
    bool posted = false;                 // MPI_Win_post has opened an exposure epoch
    bool fence_failed = false;           // a process died: no further fence can complete
    bool needs_target_fence = false;     // local targets may not have made the last fence: operations on them await it
    std::uint64_t fences = 0;            // made in this window
    std::uint64_t checks = 0;            // barriers that exchanged asserts
    bool origin_died = false;            // in an exposure epoch of this process
    std::uint32_t tests = 0;             // unsuccessful tests of exposure epochs
    bool announced = false;              // to the origins on other nodes: this process tests the exposure epoch
    std::uint32_t locks = 0;             // targets locked one by one
    std::vector<std::uint32_t> touched;  // targets opened by a fence, lock_all or start, each once
    std::vector<std::uint32_t> group;    // of the open start
    std::vector<std::uint32_t> origins;  // of the open post

    /// Ends the epoch of MPI_Win_lock at `target`.
    void end_lock(Target& target) {
        OSC_ASSERT(access == Access::Lock && locks > 0 && target.held_lock != HeldLock::None && !target.is_in_run());
        target.held_lock = HeldLock::None;
        target.close();
        if (__builtin_expect(--locks == 0, 1)) access = Access::None;
    }
    /// Room for one more touched target: afterwards touch() takes no memory.
    void make_room() {
        if (touched.size() == touched.capacity()) touched.reserve(2 * touched.size() + 4);
    }
    void note(Target& target) {
        if (!target.touched) touched.push_back(target.rank);
        target.touched = true;
    }
    void touch(Target& target) {
        note(target);
        target.allow();
    }
};

/// The state lock of a window at MPI_THREAD_MULTIPLE. A thread holds it for a few instructions and never while it
/// waits, so a spin lock that yields is enough, and it is inlined into the fast path of lock and unlock.
class StateLock {
  public:
    void lock() {
        while (!try_lock())
            contended();
    }
    bool try_lock() { return shm::set_lowest(taken_); }
    void unlock() {
        OSC_ASSERT(taken_.load(std::memory_order_relaxed) != 0);
        taken_.store(0, std::memory_order_release);
    }

  private:
    static void contended();
    std::atomic<std::uint32_t> taken_{0};
};

/// The processes of a window: which of them live, and where their memory is.
class Members : public sync::Liveness {
  public:
    /// Fills the description of a target, by the window's flavour. One thread at a time.
    virtual void describe(Target& target, const shm::ControlBlock& block) = 0;

  protected:
    ~Members() = default;
};

/// A window as epochs and strategies see it. One class, because all of its functions act on the state below: control
/// table, targets, epoch, queue.
class Core {
  public:
    Core(std::uint32_t rank, std::uint32_t processes, Members& members);
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;
    ~Core();

    /// The description of target `rank` < size, filled by the first call.
    Target& target(std::uint32_t rank) {
        OSC_ASSERT(rank < size);
        Target& entry = targets[rank];
        return entry.block.load(std::memory_order_acquire) != nullptr ? entry : know(entry, rank);
    }

    /// Resident bytes of `targets`.
    std::size_t bytes_of_targets() const;

    shm::ControlBlock& mine() const { return controls.block(me); }
    sync::LockContext lock_context() {
        sync::LockContext context{controls, me, size, members};
        context.stats = stats;
        return context;
    }

    /// Waits until this process's operations at `rank`, or kEveryTarget, are complete at their targets, or use no
    /// buffer of this process; returns their first fault.
    Fault complete_ops(std::uint32_t rank = kEveryTarget, reach::Completion until = reach::Completion::AtTarget) {
        if (__builtin_expect(incomplete.load(std::memory_order_acquire) == 0, 1)) return Fault::None;
        return complete_by_ways(rank, until);
    }
    Fault complete_local(std::uint32_t rank = kEveryTarget) { return complete_ops(rank, reach::Completion::AtOrigin); }
    static constexpr std::uint32_t kEveryTarget = reach::kEveryTarget;

    bool is_local(std::uint32_t rank) const { return controls.is_local(rank); }

    /// The way to a described target's memory.
    reach::Reach& reach(const Target& target) const {
        OSC_ASSERT(reaches[static_cast<std::size_t>(target.way)] != nullptr);
        return *reaches[static_cast<std::size_t>(target.way)];
    }

    /// The same for operations of a kind.
    reach::Reach& way_of(const Target& target, op::OpKind kind) const {
        const bool is_transfer = kind == op::OpKind::Put || kind == op::OpKind::Get;
        return is_transfer || accumulate_way == nullptr ? reach(target) : *accumulate_way;
    }

    /// Executes a call on a target that the epoch has opened. On return the origin's buffers are free and results are
    /// stored, except with `extras.pending`. The operation is complete at the target on return, or after complete_ops()
    /// if an agent or another node executes it.
    Fault execute(Target& target, const op::Call& call, const reach::Extras& extras = {});

    /// Queues a call. Faults that do not depend on the time of execution are returned now.
    Fault defer(Target& target, op::Deferral&& operation);
    /// Executes the queued operations of a target in order; the first fault.
    Fault perform_deferred(std::uint32_t rank);

    /// The barrier of all processes of the window; false if one has died. It also exchanges the FenceCounts of the
    /// control tables between the nodes.
    bool barrier();
    /// The barrier of the window's processes on this node. `is_last`: see shm::Barrier.
    bool node_barrier(bool* is_last = nullptr);

    /// This process has made this fence: executes requests of other nodes that waited for it, and publishes its number
    /// if processes of this node may await it (Epoch::needs_target_fence). `ahead`: other processes may not have made
    /// it yet. After a death the number is ~0, which is always published: no process waits for a fence of this one
    /// again.
    void announce_fence(std::uint64_t fence, bool ahead);

    /// Whether the epoch and the targets agree, for assertions. Under `state`; walks all targets.
    bool is_consistent() const;

    /// A member that has died, or -1, for a wait that other processes of the node need not share. Slow: asks the system
    /// about each, and connects to all of other nodes.
    int any_dead() const;

    Members& members;
    const std::uint32_t me;
    const std::uint32_t size;
    const std::uint64_t exclusive;               // the lock word while this process holds a lock exclusively
    Target* const targets;                       // `size` entries; null: no memory
    std::array<reach::Reach*, kWays> reaches{};  // by Way; null: no target has it
    shm::ControlTable controls;
    std::uint64_t id = 0;                     // of the window: equal on all its processes, unique in the job
    sync::RemoteSync* remote_sync = nullptr;  // null: all processes are on this node
    sync::TwoLevel* two_level = nullptr;     // null: locks are queued. On all processes or none, if no two share a node
    reach::Reach* accumulate_way = nullptr;  // not null: of accumulates to all targets, by the provider's atomics
    op::Queue deferred;                      // operations that wait for their epoch's lock, post or fence
    bool can_defer = false;                  // operations on local targets may be queued
    bool in_run = false;              // a way may have batched operations: the next synchronisation call ends that
    sync::Costs costs;                // of messages to other nodes; the same on all processes
    strategy::Strategies strategies;  // when operations are done
    strategy::LockOrder* lock_order = &strategy::g_lock_order;  // of all windows of this process
    Epoch epoch;
    // A flush of a rank below this has nothing to wait for: `size` in a lock_all epoch without incomplete operations,
    // else 0.
    std::atomic<std::uint32_t> flushable{0};
    // Unanswered messages to agents of this node, one more while a fault of theirs is unreported; batches with
    // operations, or with an unreported fault; and streams to other nodes that have something unsent or in flight.
    std::atomic<std::uint32_t> incomplete{0};
    std::atomic<std::uint32_t> unlocks{1};  // countdown to the next call of the host's progress
    std::atomic<std::uint32_t> order{1};    // see epoch::full_order
    /// Whether the fast paths may serve this window: they acquire locks at once, ignore the queue of operations, and
    /// check no asserts. Constant once the window's strategies are chosen.
    bool allows_fast_paths() const { return strategies.allow_fast_paths() && !checks; }

    stats::Counters* stats = nullptr;  // OSC_STATS: what this process does with the window; outlives it
    check::Ledger* ledger = nullptr;   // OSC_CHECK: what the usage checker knows of the window; the checker's own
    bool provider_atomics = false;     // accumulates go by the network provider's atomics, on targets of this node too
    bool came_last = false;            // at a barrier since this process reset it, as the last process of its node
    bool checks = false;               // asserts are checked, on all processes
    bool all_check = false;            // all processes run the usage checker
    bool threaded = false;             // MPI_THREAD_MULTIPLE: epoch, targets and cell_busy are under `state`
    bool cell_busy = false;            // a thread waits in a lock's queue with this process's cell
    bool pointers_given = false;       // the user has pointers to other processes' memory
    bool shared_flavour = false;       // a shared window: every process has such pointers from creation on
    std::uint16_t trace = 0;           // OSC_TRACE: its place in the timeline's table of windows
    StateLock state;

    const reach::Origin origin{me, size, members, controls, incomplete, order, batching_};  // as the ways know it

  private:
    // Whether the strategy of the open epoch allows batches: asked once for a row of epochs of one kind.
    struct Batching {
        bool operator()(bool mapped);
        Core& core;
        Access access = Access::None;
        bool allowed = false;
    };
    reach::Outcome perform(Target& target, const op::Call& call, const reach::Extras& extras);
    Fault exchange_between_nodes();
    Fault complete_by_ways(std::uint32_t rank, reach::Completion until);
    Target& know(Target& entry, std::uint32_t rank);
    Batching batching_{*this};
    std::atomic<bool> known_{false};  // some target is described
    std::mutex know_mutex_;
};

/// Takes a window's state lock if other threads may use the same window.
class StateGuard {
  public:
    explicit StateGuard(Core& core) : core_(core), held_(core.threaded) {
        if (held_) core_.state.lock();
    }
    ~StateGuard() {
        OSC_ASSERT_SLOW(core_.is_consistent());
        if (held_) core_.state.unlock();
    }
    StateGuard(const StateGuard&) = delete;
    StateGuard& operator=(const StateGuard&) = delete;

    /// Releases the state lock while wait() runs.
    template <class F>
    auto unlocked(F&& wait) {
        struct Relock {
            StateGuard& guard;
            ~Relock() {
                if (guard.held_) guard.core_.state.lock();
            }
        } const relock{*this};
        if (held_) core_.state.unlock();
        return wait();
    }

  private:
    Core& core_;
    bool held_;
};

}  // namespace osc
