// Polling by application threads, by the host, and by the network thread.
#include "progress/engine.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/wait_time.h"

namespace osc::progress {
namespace {

// True in a thread inside Driven's functions: it holds a drive lock already.
thread_local bool t_driving = false;

// Short time slices: the scheduler then runs this thread at once when something has come, even where the application's
// thread spins on the only core. A kernel that does not know the attribute refuses it, which does no harm.
void take_short_slices() {
    struct {
        std::uint32_t size, policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime, deadline, period;
    } attributes{};
    attributes.size = sizeof attributes;
    attributes.runtime = 100000;
    ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

void Backlog::enlist(DeferredWork& work) {
    const std::lock_guard lock(mutex_);
    base::insist([&] { work_.push_back(&work); });
    // In one order with the events that the caller looks for after this.
    count_.store(work_.size(), std::memory_order_seq_cst);
}

void Backlog::withdraw(DeferredWork& work) {
    const std::lock_guard lock(mutex_);
    std::erase(work_, &work);
    count_.store(work_.size(), std::memory_order_relaxed);
}

bool Backlog::resume(bool& again) {
    again = false;
    if (count_.load(std::memory_order_seq_cst) == 0) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
        // The other thread may have passed the work that this thread's events let go on.
        again = true;
        soon_.store(true, std::memory_order_seq_cst);
        return false;
    }
    soon_.store(false, std::memory_order_relaxed);
    std::erase_if(work_, [&](DeferredWork* work) {
        const DeferredWork::Left left = work->resume();
        again = again || left == DeferredWork::Left::Busy;
        return left == DeferredWork::Left::Nothing;
    });
    count_.store(work_.size(), std::memory_order_relaxed);
    if (again) soon_.store(true, std::memory_order_seq_cst);
    return true;
}

bool ProgressEngine::start(Mode mode, std::string& why) {
    if (!park_.open()) {
        why = std::string("cannot make a timer: ") + std::strerror(errno);
        return false;
    }
    apart_ = driven_.watch(park_.timer());
    if (mode == Mode::Callers) return true;
    thread_state_.store(ThreadState::Awake, std::memory_order_seq_cst);
    const int error = base::start_helper_thread<&ProgressEngine::run>(thread_, this);
    if (error == 0) return true;
    thread_state_.store(ThreadState::None, std::memory_order_relaxed);
    why = std::string("cannot start a thread: ") + std::strerror(error);
    return false;
}

void ProgressEngine::stop() {
    if (thread_state_.load(std::memory_order_relaxed) == ThreadState::None) return;
    thread_state_.store(ThreadState::Ending, std::memory_order_seq_cst);
    park_.end();
    driven_.wake();
    ::pthread_join(thread_, nullptr);
    thread_state_.store(ThreadState::None, std::memory_order_relaxed);
}

void ProgressEngine::wake_thread() {
    if (thread_state_.load(std::memory_order_seq_cst) == ThreadState::Asleep) driven_.wake();
}

void ProgressEngine::expect_direct() {
    direct_until_.store(now_ns() + Policy::kDirectHint, std::memory_order_relaxed);
    host_.warm_up(Policy::kLongWarm);
}

std::unique_lock<std::mutex> ProgressEngine::seize() {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    if (!apart_) wake_thread();
    std::unique_lock lock(drive_);
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
    return lock;
}

// Under drive_.
int ProgressEngine::drive() try {
    t_driving = true;
    const int events = driven_.poll();
    drove_ = now_ns();
    if (drove_ - checked_ >= Policy::kPeerCheck) {
        checked_ = drove_;
        driven_.check_peers();
    }
    t_driving = false;
    if (events > 0) host_.warm_up(Policy::kWarm);
    return events;
} catch (const std::exception& exception) {
    base::cannot_serve(exception);
}

bool ProgressEngine::change(ThreadState from, ThreadState to) {
    return thread_state_.compare_exchange_strong(from, to, std::memory_order_seq_cst);
}

// Under drive_, before a poll. The network thread that sleeps stays where it is, but no event wakes it before the park
// has ended.
void ProgressEngine::take_over(std::int64_t now) {
    if (thread_state_.load(std::memory_order_seq_cst) != ThreadState::Asleep) return;
    if (!change(ThreadState::Asleep, ThreadState::Parked)) return;
    driven_.ignore_events();
    park_.begin(now);
}

void ProgressEngine::park_sleeper() {
    if (!apart_ || t_driving || base::t_helper_thread || !drive_.try_lock()) return;
    const std::int64_t now = now_ns();
    take_over(now);
    polled_.store(now, std::memory_order_relaxed);
    drive_.unlock();
}

// Polls once; true if something happened. A caller that computes takes what there is while the network thread is
// parked, and does not keep it parked.
bool ProgressEngine::try_drive(Caller caller) {
    if (t_driving) return false;
    if (caller == Caller::Computes && thread_state_.load(std::memory_order_relaxed) == ThreadState::Asleep)
        return false;
    if (!drive_.try_lock()) {
        const bool asleep = !apart_ && thread_state_.load(std::memory_order_seq_cst) == ThreadState::Asleep;
        if (caller == Caller::Waits) {
            polled_.store(now_ns(), std::memory_order_relaxed);  // so that the network thread leaves the polling to it
            if (asleep) driven_.wake();
        }
        // The polling thread may need this core.
        if (caller == Caller::Waits || !asleep) ::sched_yield();
        return false;
    }
    const std::int64_t began = now_ns();
    take_over(began);
    const int events = drive();
    if (caller == Caller::Waits) {
        polled_.store(drove_, std::memory_order_relaxed);
        park_.prolong(began, drove_);
    }
    drive_.unlock();
    return events > 0;
}

void ProgressEngine::keep_thread_parked(std::int64_t began) {
    if (t_driving) return;
    if (!drive_.try_lock()) {
        polled_.store(now_ns(), std::memory_order_relaxed);
        wake_thread();
        return;
    }
    drove_ = now_ns();
    take_over(drove_);
    polled_.store(drove_, std::memory_order_relaxed);
    park_.prolong(began, drove_);
    drive_.unlock();
}

bool ProgressEngine::resume_backlog() try {
    bool again = false;
    const bool resumed = backlog_.resume(again);
    if (again) wake_thread();
    return resumed;
} catch (const std::exception& exception) {
    base::cannot_serve(exception);
}

void ProgressEngine::poll() {
    try_poll();
    resume_backlog();
}

// Whether the host waits. It counts as waiting while this process has something in flight that nothing wakes the
// network thread for.
ProgressEngine::Caller ProgressEngine::host_is() {
    if (now_ns() - host_.last.load(std::memory_order_relaxed) > Policy::kPause)
        host_.dense.store(0, std::memory_order_relaxed);
    const int polls = host_.dense.load(std::memory_order_relaxed);
    if (polls < Policy::kManyPolls) host_.dense.store(polls + 1, std::memory_order_relaxed);
    const bool waits = polls >= Policy::kManyPolls || driven_.has_transfers() || driven_.has_unsent();
    return waits ? Caller::Waits : Caller::Computes;
}

// A host that waits keeps the network thread parked, so two threads of one core hand nothing over. A host that polls
// between computations does not, or peers would wait for its next poll. Without recent messages the host's loops pay
// one look at a number.
void ProgressEngine::host_polls() {
    if (host_.warm.load(std::memory_order_relaxed) <= 0 || waiters_.load(std::memory_order_relaxed) > 0) return;
    polls_of_host_.fetch_add(1, std::memory_order_relaxed);
    const Caller host = host_is();
    if (host == Caller::Waits && host_.warm.load(std::memory_order_relaxed) > Policy::kWarm)
        for (int i = 1; i < Policy::kDirectPolls; ++i)
            try_drive(host);
    const bool cooled = !try_drive(host) && host_.warm.fetch_sub(1, std::memory_order_relaxed) == 1;
    if (cooled && host == Caller::Waits) park_.end();  // from now on the host's polls skip the network
    host_.last.store(now_ns(), std::memory_order_relaxed);
    resume_backlog();
}

bool ProgressEngine::wait(base::FunctionRef<bool()> done, base::FunctionRef<bool()> dead) {
    OSC_ASSERT(!base::t_helper_thread);  // a handler never waits for a message
    bool ended = done();
    if (ended) return true;
    const base::TimedWait waits;
    const auto over = [&] { return done() || (resume_backlog() && done()); };
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    // Events for others prolong the polling. So do direct accesses, which these polls perform part by part without an
    // event; but not for ever, because the peer may be dead.
    std::int64_t end = 0;
    const auto goes_on = [&](int round, int quiet) {
        if (driven_.has_transfers()) return true;
        if (round % Policy::kHostEvery != 0) return quiet < Policy::kQuiet;
        const std::int64_t now = now_ns();
        if (end == 0) end = now + Policy::kPolling;
        return quiet < Policy::kQuiet && now < end;
    };
    for (int round = 1, quiet = 0; !ended && round < Policy::kRounds && goes_on(round, quiet); ++round) {
        quiet = try_poll() ? 0 : quiet + 1;
        ended = over();
        if (!ended) pause(round, quiet);
    }
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
    if (ended) return true;
    // A long wait is the network thread's: it sleeps in Driven, this thread until a ring.
    park_.end();
    return shm::wait_slow(bell_, over, dead);
}

// The rounds of a wait take some milliseconds together and call the host now and then; the slow wait that follows calls
// it in each of its own (invariant I3).
void ProgressEngine::pause(int round, int quiet) {
    const shm::WaitPolicy policy = shm::wait_policy();
    if (policy.progress != nullptr && round % Policy::kHostEvery == 0) policy.progress();
    if (quiet > policy.spin) ::sched_yield();
}

void ProgressEngine::run() {
    ::pthread_setname_np(::pthread_self(), "osc-network");
    take_short_slices();
    std::int64_t last_event = now_ns();
    bool parked = false;
    for (;;) {
        const std::uint32_t parks_ended = park_.ended();
        if (thread_state_.load(std::memory_order_seq_cst) == ThreadState::Ending) return;
        std::int64_t now = now_ns();
        const bool waits = waiters_.load(std::memory_order_seq_cst) > 0;
        // try_lock: if this thread waited for the lock, each polling thread would have to wake it.
        if (waits || now - polled_.load(std::memory_order_relaxed) < Policy::kThreadYields || !drive_.try_lock()) {
            park_.rest(parks_ended, now);
            parked = true;
            restart_direct(now);
            continue;
        }
        const std::uint64_t served = served_;
        const int events = drive();
        now = now_ns();
        if (std::exchange(parked, false)) park_.was_missed(served_ != served);
        if (events > 0)
            last_event = now;
        else if (now - last_event <= Policy::kThreadSpin || now <= direct_until_.load(std::memory_order_relaxed))
            shm::cpu_relax();
        else if (!apart_ && sleep())
            last_event = now_ns();
        else if (apart_ && change(ThreadState::Awake, ThreadState::Asleep)) {
            if (sleep_apart()) last_event = now_ns();
            parked = wake_up();
            if (parked) restart_direct(now);
            resume_backlog();
            continue;
        }
        drive_.unlock();
        resume_backlog();
    }
}

// Under drive_. True if something happened.
bool ProgressEngine::sleep() {
    if (!change(ThreadState::Awake, ThreadState::Asleep)) return false;
    const int most = sleep_ms();
    bool woke = false;
    if (waiters_.load(std::memory_order_seq_cst) == 0) {
        sleeps_.fetch_add(1, std::memory_order_relaxed);
        t_driving = true;
        woke = driven_.sleep(most) > 0;
        t_driving = false;
    }
    change(ThreadState::Asleep, ThreadState::Awake);
    if (woke) host_.warm_up(Policy::kWarm);
    return woke;
}

// After the thread has set Asleep: a change that shortens the sleep comes before a look at the state.
int ProgressEngine::sleep_ms() const {
    const bool soon = driven_.retries_soon() || backlog_.retries_soon();
    return soon ? Policy::kRetrySleepMs : Policy::kSleepMs;
}

// Under drive_, which it releases. True if an event woke the thread.
bool ProgressEngine::sleep_apart() {
    const int most = sleep_ms();
    t_driving = true;
    const bool may = waiters_.load(std::memory_order_seq_cst) == 0 && driven_.may_sleep();
    t_driving = false;
    if (may) sleeps_.fetch_add(1, std::memory_order_relaxed);
    drive_.unlock();
    const bool woke = may && driven_.await(most);
    if (woke) host_.warm_up(Policy::kWarm);
    return woke;
}

// After a park since `began`. The thread that handled an announcement of direct accesses meanwhile may have stopped
// polling: the time for them begins now.
void ProgressEngine::restart_direct(std::int64_t began) {
    if (direct_until_.load(std::memory_order_relaxed) - Policy::kDirectHint >= began)
        direct_until_.store(now_ns() + Policy::kDirectHint, std::memory_order_relaxed);
}

// After sleep_apart(). True if another thread had parked this one.
bool ProgressEngine::wake_up() {
    ThreadState state = thread_state_.load(std::memory_order_relaxed);
    while (state != ThreadState::Ending &&
           !thread_state_.compare_exchange_weak(state, ThreadState::Awake, std::memory_order_seq_cst)) {
    }
    park_.rested();
    return state == ThreadState::Parked;
}

}  // namespace osc::progress
