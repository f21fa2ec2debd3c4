// Work that can go on only after an event of the network. Every thread that polls resumes all of it, so a thread that
// waits for one operation delays no other.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace osc::progress {

/// One piece of deferred work, such as a stream with messages that find no free place in flight.
class DeferredWork {
  public:
    enum class Left {
        Nothing,  // it has left the backlog; the owner may enlist it again
        Work,     // which needs another event
        Busy,     // another thread uses it, or the provider has no room: resume it soon
    };
    /// Goes on as far as possible without waiting. One thread at a time calls it, without the drive lock.
    virtual Left resume() = 0;

  protected:
    ~DeferredWork() = default;
};

/// Thread-safe. Lock order: an owner's mutex may precede the backlog's in enlist(); in resume(), where the backlog's
/// comes first, DeferredWork only tries its own.
class Backlog {
  public:
    /// Resumes `work` after each event until its resume() returns Nothing.
    void enlist(DeferredWork& work);
    /// Removes `work`; returns when no thread resumes it.
    void withdraw(DeferredWork& work);
    /// Resumes everything; false if nothing is enlisted or another thread does it. `again`: the next call is due soon,
    /// and no event announces it.
    bool resume(bool& again);
    /// Whether the last resume() asked for another one soon.
    bool retries_soon() const { return soon_.load(std::memory_order_seq_cst); }

  private:
    std::mutex mutex_;  // the thread that resumes holds it
    std::vector<DeferredWork*> work_;
    std::atomic<std::size_t> count_{0};  // of work_; a thread that reads 0 skips the lock
    std::atomic<bool> soon_{false};      // set before the network thread is woken, which reads it before it sleeps
};

}  // namespace osc::progress
