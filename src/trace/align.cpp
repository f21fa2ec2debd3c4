// The bounds are a system of difference constraints, x_to - x_from >= sent - received. Shortest paths from and to the
// first clock are its greatest and least solution. Both are feasible and the feasible set is convex, so the middle is
// feasible too: with it no message arrives before it was sent.
#include "trace/align.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace osc::trace {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr double kPart = 0.1;  // of the time: the first and the last messages, which show the drift

struct Bounds {
    double least = -kNone, greatest = kNone;
    bool known() const { return least > -kNone && greatest < kNone; }
    double middle() const { return (least + greatest) / 2; }
    double error() const { return std::max(0.0, (greatest - least) / 2); }
};

// x[to] - x[from] <= weight, for a pair of clocks.
using Weights = std::map<std::pair<std::size_t, std::size_t>, double>;

// Bellman and Ford. A cycle of negative weight (clocks that drift during the messages) ends it after as many rounds as
// there are clocks.
std::vector<double> distances(std::size_t clocks, const Weights& weights, bool backwards) {
    std::vector<double> distance(clocks, kNone);
    distance[0] = 0;
    bool changes = true;
    for (std::size_t round = 0; changes && round < clocks; ++round) {
        changes = false;
        for (const auto& [pair, weight] : weights) {
            const auto [from, to] = backwards ? std::pair(pair.second, pair.first) : pair;
            if (distance[from] + weight >= distance[to]) continue;
            distance[to] = distance[from] + weight;
            changes = true;
        }
    }
    return distance;
}

std::vector<Bounds> bounds_of(std::size_t clocks, const std::vector<Message>& messages,
                              const std::vector<Correction>& corrections) {
    Weights weights;
    for (const Message& message : messages) {
        // received + x[to] >= sent + x[from]
        const auto flight = static_cast<double>(corrections[message.to].apply(message.received) -
                                                corrections[message.from].apply(message.sent));
        const auto [entry, fresh] = weights.try_emplace({message.to, message.from}, flight);
        if (!fresh) entry->second = std::min(entry->second, flight);
    }
    const std::vector<double> greatest = distances(clocks, weights, false);
    const std::vector<double> least = distances(clocks, weights, true);
    std::vector<Bounds> bounds(clocks);
    for (std::size_t clock = 0; clock < clocks; ++clock)
        bounds[clock] = {-least[clock], greatest[clock]};
    bounds[0] = {0, 0};
    return bounds;
}

// The messages whose sending lies in a part of their sending clock's time.
std::vector<Message> part_of(const std::vector<Message>& messages, std::size_t clocks, double from, double to) {
    std::vector<std::pair<std::int64_t, std::int64_t>> spans(
        clocks, {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()});
    for (const Message& message : messages) {
        auto& [first, last] = spans[message.from];
        first = std::min(first, message.sent);
        last = std::max(last, message.sent);
    }
    std::vector<Message> part;
    for (const Message& message : messages) {
        const auto [first, last] = spans[message.from];
        const double at =
            last > first ? static_cast<double>(message.sent - first) / static_cast<double>(last - first) : 0.0;
        if (at >= from && at <= to) part.push_back(message);
    }
    return part;
}

// The time of a clock in the middle of the messages.
double middle_time(const std::vector<Message>& messages, std::size_t clock) {
    double sum = 0;
    double count = 0;
    for (const Message& message : messages)
        for (const auto& [other, time] :
             {std::pair(message.from, message.sent), std::pair(message.to, message.received)})
            if (other == clock) {
                sum += static_cast<double>(time);
                ++count;
            }
    return count > 0 ? sum / count : 0;
}

}  // namespace

std::int64_t Correction::apply(std::int64_t time) const {
    return time + std::llround(offset + drift * (static_cast<double>(time) - since));
}

std::vector<Correction> align(std::size_t clocks, std::vector<Message> messages) {
    std::vector<Correction> corrections(clocks);
    if (clocks < 2) return corrections;
    std::erase_if(messages, [](const Message& message) { return message.from == message.to; });
    const std::vector<Message> early = part_of(messages, clocks, 0, kPart);
    const std::vector<Message> late = part_of(messages, clocks, 1 - kPart, 1);
    const std::vector<Bounds> before = bounds_of(clocks, early, corrections);
    const std::vector<Bounds> after = bounds_of(clocks, late, corrections);
    for (std::size_t clock = 1; clock < clocks; ++clock) {
        if (!before[clock].known() || !after[clock].known()) continue;
        const double change = after[clock].middle() - before[clock].middle();
        const double since = middle_time(early, clock);
        const double time = middle_time(late, clock) - since;
        if (std::abs(change) <= before[clock].error() + after[clock].error() || time <= 0) continue;
        corrections[clock].drift = change / time;
        corrections[clock].since = since;
    }
    const std::vector<Bounds> all = bounds_of(clocks, messages, corrections);
    for (std::size_t clock = 0; clock < clocks; ++clock) {
        corrections[clock].known = all[clock].known();
        if (!all[clock].known()) continue;
        corrections[clock].offset = all[clock].middle();
        corrections[clock].error = all[clock].error();
    }
    return corrections;
}

}  // namespace osc::trace
