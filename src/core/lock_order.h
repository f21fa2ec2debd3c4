// The order of locks. A process acquires its locks in the order of its MPI_Win_lock calls, over all windows and
// threads: a program whose processes follow one order cannot deadlock. MPI_Win_lock may return before the lock is
// acquired, so the process remembers its last lock of that kind, and acquires it before it asks for another one.
//
// At MPI_THREAD_MULTIPLE a thread that waits for a lock must not block another one, unless the program has ordered
// their calls, which libosc cannot see. So a process defers a lock only while no other thread of the program exists: a
// thread that asks for a lock later was made after the call that deferred, and its call comes after that one.
//
// The locks of a lock_all have no order: a target's lock is acquired with the first operation there.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "core/core.h"
#include "shm/compare.h"

namespace osc::strategy {

/// The last lock of a process whose MPI_Win_lock has returned before the lock was acquired. Its window outlives the
/// states Deferred and Acquiring: MPI_Win_unlock ends the first and awaits the end of the second. Thread-safe.
class LockOrder {
  public:
    /// False if every lock is acquired whose MPI_Win_lock has returned. For the fast path of MPI_Win_lock.
    bool is_pending() const { return !shm::is_zero(state_); }

    /// Whether MPI_Win_lock may return before its lock is acquired. At MPI_THREAD_MULTIPLE one call of the system.
    bool may_defer(const Core& core);

    /// Notes that MPI_Win_lock returns before the lock of `rank` is acquired. The caller holds the window's state
    /// lock, and has called may_defer() and before that acquire().
    void defer(Core& core, std::uint32_t rank);

    /// MPI_Win_lock has requested the lock of `rank`, on another node: defers it or awaits it, without the window's
    /// state lock. A lock that is not granted is an error of the next call that needs it, not of this one.
    void defer_or_await(Core& core, StateGuard& guard, std::uint32_t rank);

    /// Acquires the deferred lock, in any window; returns when it is acquired, also if another thread acquires it. The
    /// caller holds no window's state lock. Faults as in defer_or_await().
    void acquire();

    /// Acquires the deferred lock if it is one of `core`, on a target of this node.
    Fault acquire_in(Core& core, StateGuard& guard);

    /// Ends the epoch at `rank`: no thread acquires its lock from now on. Releases the window's state lock while it
    /// waits for another thread that is acquiring the lock.
    void end(Core& core, StateGuard& guard, std::uint32_t rank);

  private:
    enum State : std::uint32_t { Ended, Deferred, Acquiring };
    bool is_alone();

    std::atomic<std::uint32_t> state_{Ended};
    std::uint32_t target_ = 0;
    Core* core_ = nullptr;
    std::atomic<bool> never_{false};  // the program has had several threads
    nlink_t alone_ = 0;               // links of /proc/self/task when the program had one thread
};

}  // namespace osc::strategy
