// The rest of the network's thread while application threads drive: it lasts until nobody has driven for a while.
//
// Waking a thread costs the one that it interrupts up to 30 us on a virtual machine, so a thread that looked now and
// then whether it is needed would be the slowest part of every message. Instead whoever drives puts the end of the rest
// off, before it comes: one system call in the time of half a rest. A process that stops driving is served at the end.
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
    /// The thread's own: rests for at least a moment, but not if one was ended since `ended`. `now`: ns, as everywhere.
    void rest(std::uint32_t ended, std::int64_t now);

    /// Whoever has driven: the rest does not end yet. One at a time.
    void put_off(std::int64_t now) {
        ++drives_;
        if (__builtin_expect(now >= due_.load(std::memory_order_relaxed), 0)) begin_again(now);
    }

    /// The thread is needed.
    void end();

  private:
    void begin_again(std::int64_t now);
    void set(std::int64_t ns) const;

    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    int timer_ = -1;
    std::atomic<std::uint32_t> ended_{0};
    std::atomic<std::int64_t> due_{kNever};  // when half of the rest is over, if there is one
    std::atomic<std::int64_t> length_{0};    // of the rest, ns
    // Of whoever drives.
    std::uint64_t drives_ = 0;
    std::uint64_t drives_before_ = 0;  // when it was put off last
    std::int64_t put_off_ = 0;         // when that was
};

}  // namespace osc::net
