// The part of a window that does not know MPI: its targets, what it shares with the other processes, and the state of
// its epochs. The rooms epoch and sync work on this, so that they run in unit tests with ranks as threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "diag/fault.h"
#include "strategy/strategy.h"
#include "sync/far.h"
#include "sync/lock.h"
#include "sync/two_level.h"
#include "transport/shm/control.h"

namespace osc {

namespace strategy {
struct DeferredLock;
}

/// How this process reaches the memory of a target.
enum class Path : std::uint8_t {
    Unknown,
    Direct,   // by load and store: shared memory, or its own
    Cma,      // by process_vm_readv and process_vm_writev
    Agent,    // by asking the target's agent
    Dynamic,  // region by region
    Net,      // by the network: on another node
};

/// A lock that this process holds on a target.
/// ExclusiveInUse: exclusive, with operations that may be under way, so that the fast unlock does not take it.
/// SharedLater, ExclusiveLater: the user holds it, but it has not been asked for yet, and operations are put off.
/// SharedWord, ExclusiveWord: by the two-level scheme; operations go as under NoCheck.
enum class Held : std::uint8_t {
    None,
    Shared,
    Exclusive,
    ExclusiveInUse,
    NoCheck,
    SharedLater,
    ExclusiveLater,
    SharedWord,
    ExclusiveWord,
};

/// The post of a target for the open start.
enum class Post : std::uint8_t { Open, Awaited, Taken };

/// What this process knows of one target. All zero until it is known; then `block` is set last, and the description is
/// valid for the window's life.
struct alignas(64) Peer {
    /// Displacements below this may be loaded and stored at `base` without asking the epoch: the one comparison of the
    /// fast path stands for "an epoch is open, the memory is mapped here, the displacement is in the window". 0 if not.
    std::atomic<std::uint64_t> reach;
    std::byte* base;                        // displacement 0 as mapped here, for Path::Direct
    std::uint64_t unit;                     // displacement unit, bytes
    std::uint64_t size;                     // bytes
    std::uint64_t full_reach;               // what `reach` is while an epoch is open
    std::atomic<shm::ControlBlock*> block;  // null: nothing is known
    std::uint32_t rank;
    Path path;
    Held held;
    bool started;  // in the group of the open start
    bool touched;  // in epoch.touched
    std::atomic<Post> post;

    /// Opens the target, or closes it, for operations of the epoch.
    void allow() { reach.store(full_reach, std::memory_order_release); }
    void forbid() { reach.store(0, std::memory_order_relaxed); }
    shm::ControlBlock& control() const { return *block.load(std::memory_order_relaxed); }
};
static_assert(sizeof(Peer) == 64);

/// The access epoch of a process at a window. A fence opens one that only its first operation makes real: until then
/// lock, start and post may follow (MPI 4.1 section 12.5.1).
/// MPI_Win_lock may follow the first three.
enum class Access : std::uint8_t { None, Fence, Lock, FenceUsed, Start, LockAll };

struct Epoch {
    Access access = Access::None;
    bool no_check = false;               // the open start or lock_all promised that no synchronisation is needed
    bool two_level_lock_all = false;     // the open lock_all is held as one lock, by the two-level scheme
    bool posted = false;                 // an exposure epoch by post is open
    bool fence_failed = false;           // somebody died: there is no other
    bool needs_peer_fence = false;       // neighbours may not have made the last fence: operations on them await it
    std::uint64_t fences = 0;            // made in this window
    std::uint64_t checks = 0;            // meetings about asserts
    bool origin_died = false;            // in an exposure epoch of this process
    std::uint32_t tests = 0;             // unsuccessful tests of exposure epochs
    std::uint32_t locks = 0;             // targets locked one by one
    std::vector<std::uint32_t> touched;  // targets opened by a fence, lock_all or start, each once
    std::vector<std::uint32_t> group;    // of the open start
    std::vector<std::uint32_t> origins;  // of the open post
    std::vector<std::shared_ptr<strategy::DeferredLock>> deferred_locks;  // of all threads

    /// A target that was locked by itself is so no longer.
    void end_lock(Peer& peer) {
        peer.held = Held::None;
        peer.forbid();
        if (__builtin_expect(--locks == 0, 1)) access = Access::None;
    }
    void note(Peer& peer) {
        if (!peer.touched) touched.push_back(peer.rank);
        peer.touched = true;
    }
    void touch(Peer& peer) {
        note(peer);
        peer.allow();
    }
};

/// Guards a window's epoch state at MPI_THREAD_MULTIPLE. Held for a few instructions and never while waiting, so a spin
/// lock that yields is enough, and it is inlined into the fast path of lock and unlock.
class StateLock {
  public:
    void lock() {
        while (!try_lock())
            contended();
    }
    /// One bit of a word, which x86-64 tests and sets in one instruction.
    bool try_lock() { return (taken_.fetch_or(1, std::memory_order_acquire) & 1) == 0; }
    void unlock() { taken_.store(0, std::memory_order_release); }

  private:
    static void contended();
    std::atomic<std::uint32_t> taken_{0};
};

class Core : public sync::Liveness {
  public:
    Core(std::uint32_t rank, std::uint32_t processes);
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;
    virtual ~Core();

    /// The target `rank` < size, known from now on.
    Peer& peer(std::uint32_t rank) {
        Peer& entry = peers[rank];
        return entry.block.load(std::memory_order_acquire) != nullptr ? entry : know(entry, rank);
    }

    /// Bytes that `peers` takes.
    std::size_t bytes_of_peers() const;

    shm::ControlBlock& mine() const { return slot.block(me); }
    sync::LockContext lock_context() { return {slot, me, size, *this}; }

    /// Waits for the operations of this process that are under way to `target`, or to all; the first fault that was
    /// met.
    Fault settle(std::uint32_t target) {
        if (__builtin_expect(unsettled.load(std::memory_order_acquire) == 0, 1)) return Fault::None;
        return await_operations(target);
    }
    Fault settle() { return settle(kEveryTarget); }
    static constexpr std::uint32_t kEveryTarget = ~std::uint32_t{0};

    bool here(std::uint32_t rank) const { return slot.here(rank); }

    /// Whether operations may be put off at all.
    virtual bool puts_off() const { return false; }
    /// Whether operations on a target have been put off; and does them, in their order: the first fault that was met.
    virtual bool has_put_off(std::uint32_t) const { return false; }
    virtual Fault do_put_off(std::uint32_t) { return Fault::None; }
    /// Forgets them: what they needed is not to be had, and the epoch is over.
    virtual void discard_put_off(std::uint32_t) {}
    /// The targets of which that is true.
    virtual std::vector<std::uint32_t> put_off_targets() const { return {}; }

    /// The barrier of all processes of the window; false if one has died. Takes along what they have left in the slot's
    /// FenceNews.
    bool meet();
    /// The barrier of those on this node.
    bool meet_here();

    /// Ends what still uses this process's memory, of operations to a target or to kEveryTarget.
    Fault settle_local(std::uint32_t target) {
        if (__builtin_expect(unsettled.load(std::memory_order_acquire) == 0, 1)) return Fault::None;
        return await_local(target);
    }

    /// This process has made a fence: what comes behind it may be done. `ahead`: others may not have made it yet. With
    /// ~0, after a death, nothing waits for this process's fences any more.
    void let_in(std::uint64_t fence, bool ahead);

    /// A member that has died, or -1. Slow: asks the system about each.
    int any_dead();

    const std::uint32_t me;
    const std::uint32_t size;
    const std::uint64_t exclusive;  // the lock word that says: held exclusively by this process
    Peer* const peers;              // `size` of them; of more than a few only what is used takes memory
    shm::Slot slot;
    sync::Far* far_sync = nullptr;        // null: all processes are on this node
    sync::TwoLevel* two_level = nullptr;  // null: locks are queued. On all processes or none, if no two share a node
    sync::Costs costs;                    // of messages to other nodes; the same on all processes
    strategy::Strategies strategies;      // when operations are done
    Epoch epoch;
    // Ranks below it may be flushed without ado: `size` in a lock_all epoch with nothing under way, else 0.
    std::atomic<std::uint32_t> flushable{0};
    std::atomic<std::uint32_t> unsettled{0};  // operations under way, and faults of such that nobody was told yet
    std::atomic<std::uint32_t> unlocks{1};    // until the host is driven again
    std::atomic<std::uint32_t> order{1};      // see epoch::full_order
    /// Whether the fast paths may see this window: they take locks at once, do not look for queued operations, and
    /// check no asserts. Constant once the window's strategies are chosen.
    bool allows_fast_paths() const { return strategies.allow_fast_paths() && !checks; }

    bool checks = false;          // asserts are checked, on all processes
    bool threaded = false;        // MPI_THREAD_MULTIPLE: epoch, peers and cell_busy are under `state`
    bool cell_busy = false;       // a thread stands in a lock's queue with this process's cell
    bool pointers_given = false;  // the user holds pointers to other processes' memory
    bool shared_flavour = false;  // all of them do, from the window's creation on
    StateLock state;

  protected:
    /// Fills what is to know about a target, by the window's flavour. One thread at a time.
    virtual void describe(Peer& peer, const shm::ControlBlock& block) = 0;
    /// settle() where something is unsettled.
    virtual Fault await_operations(std::uint32_t) { return Fault::None; }
    /// settle_local() there. Operations by agents of this node have copied what they send.
    virtual Fault await_local(std::uint32_t) { return Fault::None; }

  private:
    Fault tell_nodes();
    Peer& know(Peer& entry, std::uint32_t rank);
    std::atomic<bool> known_{false};  // any of them
    std::mutex know_mutex_;
};

/// Takes a window's mutex if other threads may be in the same window.
class StateGuard {
  public:
    explicit StateGuard(Core& core) : core_(core), held_(core.threaded) {
        if (held_) core_.state.lock();
    }
    ~StateGuard() {
        if (held_) core_.state.unlock();
    }
    StateGuard(const StateGuard&) = delete;
    StateGuard& operator=(const StateGuard&) = delete;

    /// Lets other threads in while this one waits.
    template <class F>
    auto unlocked(F&& wait) {
        if (held_) core_.state.unlock();
        auto result = wait();
        if (held_) core_.state.lock();
        return result;
    }

  private:
    Core& core_;
    bool held_;
};

}  // namespace osc
