// Aligns the clocks of machines by the messages between their processes: no message arrives before it was sent, so each
// one bounds the difference of two clocks. Messages in both directions bound it from both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace osc::trace {

/// A message between two clocks: the time when its sending began and when it was there, each in ns of its own clock.
struct Message {
    std::size_t from = 0, to = 0;  // numbers of clocks
    std::int64_t sent = 0, received = 0;
};

/// What to add to a clock's time to get the first clock's: offset + drift * (time - since).
struct Correction {
    double offset = 0;
    double drift = 0;
    double since = 0;
    double error = 0;    // bound of the offset's error, in ns; meaningless unless `known`
    bool known = false;  // messages connect the clock with the first one, in both directions
    std::int64_t apply(std::int64_t time) const;
};

/// The corrections of `clocks` clocks; the first one's is zero. A clock without messages in both directions, direct or
/// by way of others, is left as it is. Clocks drift apart: where no constant offset suits the first and the last tenth
/// of the messages' time, the correction grows with time.
std::vector<Correction> align(std::size_t clocks, std::vector<Message> messages);

}  // namespace osc::trace
