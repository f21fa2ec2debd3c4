// The progress engine of a process: it decides which thread polls the network, and polls. A network thread polls while
// the application computes (invariant I4); it never calls MPI (invariant I2). An application thread that waits in
// libosc or in the host polls itself, and the network thread parks meanwhile. policy.h has the policy.
//
// One thread at a time polls, under the drive lock, so the network's handlers run one after the other and in order.
// They never wait for a message. The engine knows the network as a `Driven` only.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/helper_thread.h"
#include "progress/policy.h"
#include "progress/progress_park.h"
#include "shm/wait.h"

namespace osc::progress {

/// What an engine drives. Its thread calls no function of the engine that waits for the drive lock.
class Driven {
  public:
    // Under the drive lock.
    /// Handles what has arrived and sends what was deferred; the number of events.
    virtual int poll() = 0;
    /// Sleeps until an event, wake() or the end of `milliseconds`, and handles events like poll(). Not 0 if something
    /// came that is no event.
    virtual int sleep(int milliseconds) = 0;
    /// Looks for dead peers. Called every Policy::kPeerCheck.
    virtual void check_peers() = 0;
    /// Whether something awaits a change that no event announces: a sleep ends after Policy::kRetrySleepMs. Reads in
    /// the total order of seq_cst what other threads change before they call wake_thread().
    virtual bool retries_soon() const = 0;

    // A sleep in two parts, during the second of which another thread may poll; see fabric::Endpoint. Without it the
    // network thread calls sleep().
    virtual bool watch(int /*timer*/) { return false; }
    virtual bool may_sleep() { return false; }
    virtual void ignore_events() {}
    /// Without the drive lock.
    virtual bool await(int /*milliseconds*/) { return false; }

    // Thread-safe.
    /// Ends the sleep() or await() of another thread, or the next one.
    virtual void wake() = 0;
    /// Whether direct accesses of this process are in flight, or messages not sent yet. No event need announce that
    /// they can go on.
    virtual bool has_transfers() const = 0;
    virtual bool has_unsent() const = 0;

  protected:
    ~Driven() = default;
};

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

/// Work that can go on only after an event of the network. Every thread that polls resumes all of it, so a thread that
/// waits for one operation delays no other. Thread-safe. Lock order: an owner's mutex may precede the backlog's in
/// enlist(); in resume(), where the backlog's comes first, DeferredWork only tries its own.
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

class ProgressEngine {
  public:
    explicit ProgressEngine(Driven& driven) : driven_(driven) {}
    ProgressEngine(const ProgressEngine&) = delete;
    ProgressEngine& operator=(const ProgressEngine&) = delete;

    /// Which threads poll: the network thread too, or only the callers of poll() and wait().
    enum class Mode { Thread, Callers };
    /// Before all others; false with the reason in `why`.
    [[gnu::cold]] bool start(Mode mode, std::string& why);
    /// Ends the network thread.
    void stop();

    /// Polls once, unless another thread polls, and resumes the backlog. For wait loops of other rooms.
    void poll();
    /// Like poll(), while messages keep coming. For the host MPI's own loops, perhaps under its locks.
    void host_polls();
    /// Polls once; true if something happened. The caller polls again soon, so the network thread stays parked.
    bool try_poll() { return try_drive(Caller::Waits); }
    /// Keeps the network thread parked as if the caller had polled since `began`.
    void keep_thread_parked(std::int64_t began);
    /// The caller is about to send and then to wait. Parks a sleeping network thread, which the end of the message and
    /// the answer would wake on the core that sends.
    void expect_wait() {
        if (thread_state_.load(std::memory_order_relaxed) == ThreadState::Asleep) park_sleeper();
    }

    /// Polls and resumes the backlog until `done()`; false if `dead()`, called after long waits, gave it up. For
    /// application threads without any lock: it calls the host MPI too.
    bool wait(base::FunctionRef<bool()> done, base::FunctionRef<bool()> dead);
    /// After a round of a loop around try_poll() that goes on: `quiet` rounds were without an event.
    static void pause(int round, int quiet);
    /// Wakes the threads in wait(), after a change of what they wait for.
    void ring() { bell_.ring(); }

    /// Takes the drive lock: no handler runs until it is released.
    std::unique_lock<std::mutex> seize();
    /// Wakes the network thread if it sleeps, after a change that Driven's predicates or poll() see.
    void wake_thread();
    /// A peer announced direct accesses.
    void expect_direct();

    /// Under the drive lock: a message came whose sender waits for this process.
    void serves() { ++served_; }

    Backlog& backlog() { return backlog_; }
    /// For statistics: sleeps of the network thread, and polls of host_polls().
    std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }
    std::uint64_t polls_of_host() const { return polls_of_host_.load(std::memory_order_relaxed); }

  private:
    /// What a caller does between its polls.
    enum class Caller : std::uint8_t { Waits, Computes };
    enum class ThreadState : std::uint8_t { None, Awake, Asleep, Parked, Ending };
    /// The polls of the host MPI.
    struct HostPolls {
        std::atomic<int> warm{0};           // polls left before they are left to the thread; below 1: none
        std::atomic<std::int64_t> last{0};  // when the last one ended
        std::atomic<int> dense{0};          // polls without a pause before the next one, up to kManyPolls
        void warm_up(int polls) {
            if (warm.load(std::memory_order_relaxed) < polls) warm.store(polls, std::memory_order_relaxed);
        }
    };

    int drive();
    void take_over(std::int64_t now);
    void park_sleeper();
    bool try_drive(Caller caller);
    bool resume_backlog();
    Caller host_is();
    void run();
    bool sleep();
    bool sleep_apart();
    bool wake_up();
    void restart_direct(std::int64_t began);
    bool change(ThreadState from, ThreadState to);
    int sleep_ms() const;

    Driven& driven_;
    ProgressPark park_;   // rest() is the network thread's; prolong() and begin() under drive_
    bool apart_ = false;  // the network thread sleeps without the drive lock
    Backlog backlog_;
    shm::Doorbell bell_;
    HostPolls host_;
    pthread_t thread_{};
    std::mutex drive_;
    std::int64_t drove_ = 0;    // when a thread polled last; under drive_
    std::int64_t checked_ = 0;  // when check_peers() was called last; under drive_
    std::uint64_t served_ = 0;  // calls of serves(); under drive_

    // Threads in wait() or seize(). A thread counts itself before it reads thread_state_, and the network thread sets
    // Asleep before it reads this: either the network thread stays awake or the other thread wakes it.
    std::atomic<int> waiters_{0};
    // Asleep while the network thread sleeps in Driven: with the drive lock in sleep(); without it in await(), and then
    // a thread that takes the drive lock and polls makes it Parked before, because a poll may take what would end the
    // sleep. Ending is final.
    std::atomic<ThreadState> thread_state_{ThreadState::None};
    // When an application thread polled last and went on polling. The network thread parks while this is recent.
    std::atomic<std::int64_t> polled_{0};
    // Peers announced direct accesses until then: the network thread does not sleep before.
    std::atomic<std::int64_t> direct_until_{0};
    std::atomic<std::uint64_t> sleeps_{0};
    std::atomic<std::uint64_t> polls_of_host_{0};
};

}  // namespace osc::progress
