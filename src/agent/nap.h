// The rest of the network's thread while application threads drive: it lasts until nobody has driven for a while.
//
// Waking a thread costs the one that it interrupts up to 30 us on a virtual machine, so a thread that looked now and
// then whether it is needed would be the slowest part of many a message. Instead whoever drives prolongs the rest
// before it ends: a system call now and then. A process that stops driving is served when the rest has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace osc::net {

class Nap {
  public:
    Nap() = default;
    ~Nap();
    Nap(const Nap&) = delete;
    Nap& operator=(const Nap&) = delete;

    /// Before all others; false (errno) if the system gives no timer.
    bool open();

    /// How often rests were ended: for rest(), read before what was looked at to decide on one.
    std::uint32_t ended() const { return ended_.load(std::memory_order_seq_cst); }
    /// The thread's own: rests, for 100 us if nobody prolongs it; not if one was ended since `ended`. `now`: ns of
    /// CLOCK_MONOTONIC, as everywhere.
    void rest(std::uint32_t ended, std::int64_t now);

    /// Of whoever has just driven, since `began`, one at a time: prolongs the rest, if there is one that would end
    /// soon.
    void prolong(std::int64_t began, std::int64_t now) {
        if (began - drove_ > kPause) paused_ = true;
        drove_ = now;
        if (__builtin_expect(now >= due_.load(std::memory_order_relaxed), 0)) renew(now);
    }

    /// Any thread's: the network's is needed.
    void end();

  private:
    void renew(std::int64_t now);
    void set(std::int64_t length, std::int64_t now);
    void set_timer(std::int64_t ns) const;

    /// Between the drives of who does nothing else, ns, an interruption by the thread included; the drives themselves
    /// may be longer, where the provider writes much. For whoever makes longer pauses the thread is not kept away for
    /// long.
    static constexpr std::int64_t kPause = 60000;
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    int timer_ = -1;
    std::atomic<std::uint32_t> ended_{0};
    std::atomic<std::uint32_t> ended_before_{0};  // when the rest began
    std::atomic<std::int64_t> due_{kNever};       // when the rest is to be prolonged, if there is one
    std::atomic<std::int64_t> length_{0};
    // Of whoever drives.
    std::int64_t drove_ = 0;
    bool paused_ = false;  // since the rest was prolonged last
};

}  // namespace osc::net
