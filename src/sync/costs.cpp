// The formulas of docs/STRATEGIES.md for an epoch between two fences.
#include "sync/costs.h"

#include <algorithm>

#include "base/log.h"

namespace osc::sync {

Predicted predict(const Costs& costs, const Traffic& traffic) {
    const double fences = 2.0 * costs.rounds * costs.way;
    const double reply = 2.0 * costs.way;
    const double messages = static_cast<double>(traffic.gathered) * costs.byte;
    const double direct = static_cast<double>(traffic.direct) * costs.byte;
    if (!traffic.any()) return {fences, fences};
    // The origin awaits the reply to its last message, or the end of its last direct access.
    const double immediate = fences + messages + direct + reply;
    // The origin awaits no reply to a message. Its first direct access to a target waits until the target announces its
    // fence; messages overlap with that.
    const double deferred =
        traffic.direct == 0 ? fences + messages : fences + std::max(messages, reply) + direct + reply;
    return {immediate, deferred};
}

std::uint32_t wanted(const Predicted& predicted, const Traffic& traffic) {
    if (!traffic.any()) return kNothing;
    return predicted.immediate < predicted.deferred ? kImmediate : kDeferred;
}

std::string text_of(const Costs& costs) {
    return base::format("a message's way %.1f us, %.2f ns a byte, %u round%s of messages in a barrier", costs.way / 1e3,
                        costs.byte, costs.rounds, costs.rounds == 1 ? "" : "s");
}

}  // namespace osc::sync
