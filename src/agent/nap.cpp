// The timer behind the rests of the network's thread.
#include "agent/nap.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

namespace osc::net {
namespace {

constexpr std::int64_t kShort = 100000;
constexpr std::int64_t kLong = 1000000;  // of a process that does nothing but drive, and has for as long
constexpr std::int64_t kDense = 4000;    // between the polls of such a process

}  // namespace

bool Nap::open() {
    if (timer_ < 0) timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return timer_ >= 0;
}

Nap::~Nap() {
    if (timer_ >= 0) ::close(timer_);
}

void Nap::set(std::int64_t ns) const {
    itimerspec spec{};
    spec.it_value = {ns / 1000000000, ns % 1000000000};
    ::timerfd_settime(timer_, 0, &spec, nullptr);
}

void Nap::rest(std::uint32_t ended, std::int64_t now) {
    set(kShort);
    length_.store(kShort, std::memory_order_relaxed);
    due_.store(now + kShort / 2, std::memory_order_relaxed);
    // An end() before the timer was set is seen here, and one behind that has set it.
    std::uint64_t times = 0;
    if (ended == this->ended()) static_cast<void>(!::read(timer_, &times, sizeof times));
    due_.store(kNever, std::memory_order_relaxed);
}

void Nap::begin_again(std::int64_t now) {
    const std::uint64_t drives = drives_ - drives_before_;
    const bool dense = static_cast<std::int64_t>(drives) * kDense > now - put_off_;
    const std::int64_t length = dense ? std::min(2 * length_.load(std::memory_order_relaxed), kLong) : kShort;
    drives_before_ = drives_;
    put_off_ = now;
    length_.store(length, std::memory_order_relaxed);
    due_.store(now + length / 2, std::memory_order_relaxed);
    set(length);
}

void Nap::end() {
    ended_.fetch_add(1, std::memory_order_seq_cst);
    set(1);
}

}  // namespace osc::net
