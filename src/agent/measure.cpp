// What messages to another node cost, for the choice of strategies: measured once by the process that asks first.
#include <algorithm>
#include <array>
#include <cstring>

#include "agent/network.h"

namespace osc::net {
namespace {

constexpr std::int64_t kConnecting = 500000000;  // ns for the first answer
constexpr std::int64_t kAtMost = 5000000;        // ns for those of a size, however slow the network is
constexpr int kTimes = 9;                        // of which the median counts
constexpr std::size_t kLarge = 8192;             // bytes of the messages that tell what a byte costs

}  // namespace

// ns from sending a message with so many bytes until it is answered; of a network that takes longer than `until`, what
// has passed then.
std::int64_t Network::round_trip(Connection& to, std::size_t bytes, std::int64_t until) {
    const std::uint32_t before = to.pongs.load(std::memory_order_acquire);
    Message* message = claim();
    std::memset(message->body(), 0, bytes);
    message->bytes = bytes;
    const std::int64_t begin = now_ns();
    address(message, to, FrameKind::Ping, 0, 0, 0);
    send(message);
    wait([&] { return to.pongs.load(std::memory_order_acquire) != before || now_ns() > until; },
         [&] { return now_ns() > until; });
    return now_ns() - begin;
}

Network::Cost Network::measure(const Card& card) {
    static std::mutex measuring;
    const std::lock_guard lock(measuring);
    Connection* to = cost_.way > 0 ? nullptr : connect(card);
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

}  // namespace osc::net
