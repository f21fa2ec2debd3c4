// The cost model by which the fence strategy `auto` chooses: the time of an epoch with each strategy. The constants
// come from a measurement of the network (net/measure.cpp), an epoch's traffic from the window's
// streams. docs/STRATEGIES.md derives the formulas.
#pragma once

#include <cstdint>
#include <string>

namespace osc::sync {

/// Costs of messages to other nodes, the same on all processes of a window. All zero: not measured.
struct Costs {
    double way = 0;            // ns: one-way latency of a small message (alpha)
    double byte = 0;           // ns: for each further byte (beta)
    std::uint32_t rounds = 0;  // rounds of messages in a barrier of all nodes
};

/// The traffic of a process to other nodes in an epoch.
struct Traffic {
    std::uint64_t gathered = 0;  // bytes in messages
    std::uint64_t direct = 0;    // bytes written or read directly

    bool any() const { return gathered + direct > 0; }
    void add(const Traffic& more) {
        gathered += more.gathered;
        direct += more.direct;
    }
};

/// Predicted ns of an epoch between two fences, from this process's operations.
struct Predicted {
    double immediate;
    double deferred;
};
Predicted predict(const Costs& costs, const Traffic& traffic);

/// A process's vote for the next epoch's strategy; the votes of all processes are or-ed.
enum Want : std::uint32_t {
    kNothing = 0,
    kImmediate = 1,  // outweighs kDeferred
    kDeferred = 2,
};
std::uint32_t wanted(const Predicted& predicted, const Traffic& traffic);

/// A line for OSC_VERBOSE, such as "a message's way 6.2 us, 0.41 ns a byte, 1 round of messages in a barrier".
std::string text_of(const Costs& costs);

}  // namespace osc::sync
