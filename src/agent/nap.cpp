// The timer behind the rests of the network's thread.
#include "agent/nap.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace osc::net {
namespace {

// A process that stops driving is not served before the rest ends, so it becomes hardly longer than the driving has
// lasted; and more slowly longer from where prolonging it, which takes 15 to 30 us, is no more than 4 % of that.
constexpr std::int64_t kShort = 100000;
constexpr std::int64_t kLong = 1000000;
constexpr std::int64_t kLongest = 2000000;

}  // namespace

Nap::~Nap() {
    if (timer_ >= 0) ::close(timer_);
}

bool Nap::open() {
    if (timer_ < 0) timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return timer_ >= 0;
}

void Nap::set_timer(std::int64_t ns) const {
    itimerspec spec{};
    spec.it_value = {ns / 1000000000, ns % 1000000000};
    ::timerfd_settime(timer_, 0, &spec, nullptr);
}

void Nap::set(std::int64_t length, std::int64_t now) {
    length_.store(length, std::memory_order_relaxed);
    due_.store(now + length * 3 / 4, std::memory_order_relaxed);
    set_timer(length);
}

void Nap::rest(std::uint32_t ended, std::int64_t now) {
    ended_before_.store(ended, std::memory_order_relaxed);
    set(kShort, now);
    // An end() before the timer was set is seen here; one that comes later sets it anew.
    if (ended == this->ended()) {
        std::uint64_t times = 0;
        static_cast<void>(!::read(timer_, &times, sizeof times));
    }
    due_.store(kNever, std::memory_order_relaxed);
}

// A rest that somebody ends at the same moment lasts up to its length, not longer: the next look sees that. One that
// has ended already is not called back from a thread that waits for its core: on a full machine it might never get it.
void Nap::renew(std::int64_t now) {
    if (ended() != ended_before_.load(std::memory_order_relaxed)) return;
    const std::int64_t length = length_.load(std::memory_order_relaxed);
    if (now - length / 4 >= due_.load(std::memory_order_relaxed)) return;
    const bool dense = !std::exchange(paused_, false);
    if (!dense)
        set(kShort, now);
    else
        set(length < kLong ? std::min(2 * length, kLong) : std::min(length + length / 16, kLongest), now);
}

void Nap::end() {
    ended_.fetch_add(1, std::memory_order_seq_cst);
    set_timer(1);
}

}  // namespace osc::net
