// Where the network thread rests while application threads poll: until no thread has polled for a while.
//
// Waking a thread costs the thread that it interrupts up to 30 us on a virtual machine, so a network thread that looked
// now and then whether it is needed would be the slowest part of many a message. Instead each polling thread prolongs
// the park before it ends, with a system call now and then. A process that stops polling is served when the park has
// ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "progress/policy.h"

namespace osc::progress {

class ProgressPark {
  public:
    ProgressPark() = default;
    virtual ~ProgressPark();
    ProgressPark(const ProgressPark&) = delete;
    ProgressPark& operator=(const ProgressPark&) = delete;

    /// Before all others; false (errno) if the system gives no timer.
    bool open();

    /// The timer's descriptor, readable when a park that begin() began has ended.
    int timer() const { return timer_; }

    /// The number of end() calls. The network thread reads it before it looks whether it is needed, for rest().
    std::uint32_t ended() const { return ended_.load(std::memory_order_seq_cst); }
    /// Called by the network thread. Rests for a while, longer if prolong() is called, not at all if end() was called
    /// since `ended`. `now`: now_ns(), as everywhere.
    void rest(std::uint32_t ended, std::int64_t now);
    /// Called by a polling thread: begins a park of the network thread, which waits for timer() and calls rested().
    void begin(std::int64_t now);
    void rested();
    /// Called by the network thread after a park. If a peer had to wait for its end the next one lasts
    /// Policy::kParkShort, else twice as long as this one, up to Policy::kParkLongest.
    void was_missed(bool missed);

    /// Called by a thread that has polled from `began` to `now`, one at a time. Prolongs the park if it would end soon.
    void prolong(std::int64_t began, std::int64_t now) {
        if (began - polled_ > Policy::kPause) paused_ = true;
        polled_ = now;
        if (__builtin_expect(now >= due_.load(std::memory_order_relaxed), 0)) renew(now);
    }

    /// Ends the park: the network thread is needed. Thread-safe.
    void end();

  protected:
    // The timer. A test overrides both and so decides what time it is.
    virtual void set_timer(std::int64_t ns) const;
    virtual void await_timer();

  private:
    void renew(std::int64_t now);
    void set(std::int64_t length, std::int64_t now);

    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    int timer_ = -1;
    std::atomic<std::uint32_t> ended_{0};
    std::atomic<std::uint32_t> ended_before_{0};  // ended_ when the park began
    std::atomic<std::int64_t> due_{kNever};       // when the park is to be prolonged; kNever without one
    std::atomic<std::int64_t> length_{0};
    std::atomic<std::int64_t> first_{Policy::kParkShort};  // the length at which a park begins
    // The polling threads', under the engine's drive lock.
    std::int64_t polled_ = 0;
    bool paused_ = false;  // since the park was last prolonged
};

}  // namespace osc::progress
