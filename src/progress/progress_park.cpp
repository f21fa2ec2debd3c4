// The timer behind the park.
// Build: osc_core_cold
#include "progress/progress_park.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/descriptor.h"

namespace osc::progress {

ProgressPark::~ProgressPark() {
    if (timer_ >= 0) ::close(timer_);
}

bool ProgressPark::open() {
    if (timer_ < 0) timer_ = base::above_stdio(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    return timer_ >= 0;
}

void ProgressPark::set_timer(std::int64_t ns) const {
    itimerspec spec{};
    spec.it_value = {ns / 1000000000, ns % 1000000000};
    ::timerfd_settime(timer_, 0, &spec, nullptr);
}

void ProgressPark::await_timer() {
    std::uint64_t times = 0;
    static_cast<void>(!::read(timer_, &times, sizeof times));
}

void ProgressPark::set(std::int64_t length, std::int64_t now) {
    length_.store(length, std::memory_order_relaxed);
    due_.store(now + length * 3 / 4, std::memory_order_relaxed);
    set_timer(length);
}

void ProgressPark::rest(std::uint32_t ended, std::int64_t now) {
    ended_before_.store(ended, std::memory_order_relaxed);
    set(first_.load(std::memory_order_relaxed), now);
    // This sees an end() from before the timer was set; a later one sets the timer anew.
    if (ended == this->ended()) await_timer();
    due_.store(kNever, std::memory_order_relaxed);
}

// The timer is set anew if end() set it before this did.
void ProgressPark::begin(std::int64_t now) {
    const std::uint32_t ended = this->ended();
    ended_before_.store(ended, std::memory_order_relaxed);
    set(first_.load(std::memory_order_relaxed), now);
    if (ended != this->ended()) set_timer(1);
}

void ProgressPark::rested() {
    due_.store(kNever, std::memory_order_relaxed);
    set_timer(0);
}

void ProgressPark::was_missed(bool missed) {
    const std::int64_t longer = std::min(2 * first_.load(std::memory_order_relaxed), Policy::kParkLongest);
    first_.store(missed ? Policy::kParkShort : longer, std::memory_order_relaxed);
}

// An end() at the same moment leaves a park of at most its length, which the next prolong() sees. A park that has ended
// already is not begun anew: the network thread may be waiting for its core, and on a full machine it might never get
// it.
void ProgressPark::renew(std::int64_t now) {
    if (ended() != ended_before_.load(std::memory_order_relaxed)) return;
    const std::int64_t length = length_.load(std::memory_order_relaxed);
    if (now - length / 4 >= due_.load(std::memory_order_relaxed)) return;
    const std::int64_t first = first_.load(std::memory_order_relaxed);
    if (std::exchange(paused_, false))
        set(first, now);
    else if (length < Policy::kParkLong)
        set(std::max(first, std::min(2 * length, Policy::kParkLong)), now);
    else
        set(std::min(length + length / 16, Policy::kParkLongest), now);
}

void ProgressPark::end() {
    ended_.fetch_add(1, std::memory_order_seq_cst);
    set_timer(1);
}

}  // namespace osc::progress
