// The order of locks. A thread acquires its locks in the order of its MPI_Win_lock calls, over all windows: a program
// whose processes follow one order cannot deadlock. MPI_Win_lock may return before the lock is acquired, so each thread
// remembers its last lock of that kind, and acquires it before it asks for another one. Only that thread waits.
//
// The locks of a lock_all have no order: a target's lock is acquired with the first operation there.
#pragma once

#include <atomic>
#include <cstdint>

#include "strategy/core.h"

namespace osc::strategy {

/// A lock whose MPI_Win_lock has returned before the lock was acquired. Its window and the calling thread share it. The
/// window outlives the states Deferred and Acquiring: MPI_Win_unlock ends the first and awaits the end of the second.
struct DeferredLock {
    enum class State : std::uint8_t { Deferred, Acquiring, Ended };
    Core* core = nullptr;
    std::uint32_t target = 0;
    std::atomic<State> state{State::Ended};
};

/// True if this thread's last lock may be deferred. One load, for the fast path of MPI_Win_lock.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool t_lock_deferred;

/// Notes that MPI_Win_lock returns before the lock of `target` is acquired. The caller holds the window's state lock,
/// and has called acquire_deferred_lock().
void defer_lock(Core& core, std::uint32_t target);

/// Acquires this thread's deferred lock, if there is one, in any window. Blocks this thread only: the caller holds no
/// window's state lock. A lock that cannot be acquired is an error of the next call that needs it, not of this one.
void acquire_deferred_lock();

/// Acquires the deferred locks of all threads on targets of this node. Returns the first fault.
Fault acquire_deferred_locks(Core& core, StateGuard& guard);

/// Ends the epoch at `target`: no thread acquires its lock from now on. Releases the window's state lock while it waits
/// for another thread that is acquiring the lock.
void end_deferred_lock(Core& core, StateGuard& guard, std::uint32_t target);

}  // namespace osc::strategy
