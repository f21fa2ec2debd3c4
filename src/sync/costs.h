// What a fence's epoch costs by each strategy: the model by which `auto` chooses. Owns no measurement: the constants
// come from the network (agent/measure.cpp), what an epoch was like from the window's streams. docs/MODEL.md derives
// it.
#pragma once

#include <cstdint>
#include <string>

namespace osc::sync {

/// Of messages to other nodes, the same on all processes of a window. All zero: not measured.
struct Costs {
    double way = 0;            // ns: of a small message from one process to another, one way (alpha)
    double byte = 0;           // ns: more for each byte (beta)
    std::uint32_t rounds = 0;  // of messages, one after the other, until all nodes have heard of all
};

/// What a process has sent to other nodes in an epoch.
struct Traffic {
    std::uint64_t gathered = 0;  // bytes in messages
    std::uint64_t direct = 0;    // bytes written or read directly

    bool any() const { return gathered + direct > 0; }
    void add(const Traffic& more) {
        gathered += more.gathered;
        direct += more.direct;
    }
};

/// ns for an epoch between two fences, as far as this process's operations have to do with it.
struct Predicted {
    double immediate;
    double deferred;
};
Predicted predict(const Costs& costs, const Traffic& traffic);

/// What a process wants the next epoch to be after one like that; what all want is or-ed together.
enum Want : std::uint32_t {
    kNothing = 0,
    kImmediate = 1,  // goes before:
    kDeferred = 2,
};
std::uint32_t wanted(const Predicted& predicted, const Traffic& traffic);

/// "a message's way 6.2 us, 0.41 ns a byte, 1 round of a barrier": for people.
std::string text_of(const Costs& costs);

}  // namespace osc::sync
