// What messages to another node cost, for the choice of strategies.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/clock.h"
#include "transport/am/network_stack.h"

namespace osc::am {
namespace {

constexpr std::int64_t kConnecting = 500000000;  // ns for the first answer
constexpr std::int64_t kAtMost = 5000000;        // ns for all pings of one size, however slow the network is
constexpr int kTimes = 9;                        // pings of one size; their median counts
constexpr std::size_t kLarge = 8192;             // bytes of the pings that show what a byte costs

}  // namespace

// ns from a ping with so many bytes to its answer; the time that has passed if there is none at `until`.
std::int64_t NetworkStack::round_trip(Connection& to, std::size_t bytes, std::int64_t until) {
    const std::uint32_t before = to.pongs.load(std::memory_order_acquire);
    Message* message = sender.claim();
    std::memset(message->body(), 0, bytes);
    message->bytes = bytes;
    const std::int64_t begin = now_ns();
    messenger.ping(to, message);
    engine.wait([&] { return to.pongs.load(std::memory_order_acquire) != before || now_ns() > until; },
                [&] { return now_ns() > until; });
    return now_ns() - begin;
}

NetworkStack::Cost NetworkStack::measure(const ProcessAddress& address) {
    static std::mutex measuring;
    const std::lock_guard lock(measuring);
    Connection* to = cost_.way > 0 ? nullptr : connections.connect(address);
    if (to == nullptr) return cost_;
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
    const double large = median(kLarge);
    cost_ = {small / 2, std::max(0.0, large - small) / static_cast<double>(kLarge)};
    return cost_;
}

}  // namespace osc::am
