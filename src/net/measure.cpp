// What messages to another node cost, for the choice of strategies, and whether they wake a sleeping process, for the
// choice of a provider.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "net/network_stack.h"

namespace osc::net {
namespace {

constexpr std::int64_t kConnecting = 500000000;  // ns for the first answer
constexpr std::int64_t kAtMost = 5000000;        // ns for all pings of one size, however slow the network is
constexpr int kTimes = 9;                        // pings of one size; their median counts
constexpr std::size_t kLarge = 8192;             // bytes of the pings that show what a byte costs, at most

// The proof that messages wake: pings after pauses, in which the network thread falls asleep. Two of them are longer
// than its longest park, and each further one is twice as long, for a thread that gets no core.
constexpr std::uint32_t kWakePings = 6;
constexpr int kLateAnswers = 2;  // show that they do not wake; one may come from a busy machine
constexpr auto kWakePause = std::chrono::milliseconds(2);
static_assert(2 * kWakePause > std::chrono::nanoseconds(progress::Policy::kParkLongest));
constexpr std::int64_t kAwake = progress::Policy::kSleepMs * std::int64_t{1000000} / 2;  // ns: no sleep ended by itself
constexpr std::int64_t kProofAtMost = 10000000000;                                       // ns

}  // namespace

// ns from a ping with so many bytes to its answer; the time that has passed if there is none at `until`.
std::int64_t NetworkStack::round_trip(Connection& to, std::size_t bytes, std::int64_t until) {
    const std::uint32_t before = to.pongs.load(std::memory_order_acquire);
    Message* message = sender.claim();
    std::memset(message->body(), 0, bytes);
    message->bytes = bytes;
    const std::int64_t begin = now_ns();
    sender.send(to, {.kind = FrameKind::Ping}, message);
    engine.wait([&] { return to.pongs.load(std::memory_order_acquire) != before || now_ns() > until; },
                [&] { return now_ns() > until; });
    return now_ns() - begin;
}

sync::Costs NetworkStack::measure(const ProcessAddress& address) {
    static std::mutex measuring;
    const std::lock_guard lock(measuring);
    Connection* to = costs_.way > 0 ? nullptr : connections.connect(address);
    if (to == nullptr) return costs_;
    static_cast<void>(round_trip(*to, 0, now_ns() + kConnecting));
    const auto median = [&](std::size_t bytes) {
        const std::int64_t until = now_ns() + kAtMost;
        std::array<std::int64_t, kTimes> each;
        each.fill(round_trip(*to, bytes, until));
        for (std::int64_t& one : each)
            if (now_ns() < until) one = round_trip(*to, bytes, until);
        std::nth_element(each.begin(), each.begin() + kTimes / 2, each.end());
        return static_cast<double>(each[kTimes / 2]);
    };
    const double small = median(0);
    const std::size_t bytes = std::min(kLarge, largest_body());
    const double large = median(bytes);
    costs_ = {small / 2, std::max(0.0, large - small) / static_cast<double>(bytes)};
    return costs_;
}

// Waits until so many pings of a process have come that earlier calls did not count.
bool NetworkStack::await_pings(Connection& from, std::uint32_t count, bool polls) {
    from.expected_pings += count;
    const std::int64_t until = now_ns() + kProofAtMost;
    const auto came = [&] { return from.pings.load(std::memory_order_acquire) >= from.expected_pings; };
    const auto over = [&] { return came() || now_ns() > until; };
    if (polls) engine.wait(over, [&] { return now_ns() > until; });
    while (!over())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return came();
}

// An answer shows something only if the network thread has slept since the one before. If it never did, it polls, and
// needs nothing that wakes it.
bool NetworkStack::ask_sleeper(Connection& to) {
    if (!await_pings(to, 1, true)) return false;
    bool woke = false;
    int late = 0;
    std::uint32_t left = kWakePings;
    for (auto pause = kWakePause; left > 0 && !woke && late < kLateAnswers; --left) {
        std::this_thread::sleep_for(pause);
        const std::uint32_t sleeps = to.sleeps.load(std::memory_order_relaxed);
        const std::int64_t answer = round_trip(to, 0, now_ns() + kProofAtMost);
        if (left == kWakePings) continue;  // how often the thread slept before is not known
        pause *= 2;
        if (to.sleeps.load(std::memory_order_relaxed) == sleeps) continue;
        if (answer < kAwake)
            woke = true;
        else
            ++late;
    }
    // The other process awaits the rest of the pings all the same, and later measures must not count these answers.
    const std::uint32_t all = to.pongs.load(std::memory_order_relaxed) + left;
    while (left-- > 0)
        sender.control(to, FrameKind::Ping);
    const std::int64_t until = now_ns() + kProofAtMost;
    const auto over = [&] { return to.pongs.load(std::memory_order_acquire) >= all || now_ns() > until; };
    engine.wait(over, [&] { return now_ns() > until; });
    return woke || late == 0;
}

void NetworkStack::sleep_for(Connection& from) {
    sender.control(from, FrameKind::Ping);
    static_cast<void>(await_pings(from, kWakePings, false));
}

}  // namespace osc::net
