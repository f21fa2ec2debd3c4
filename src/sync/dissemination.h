// How nodes meet by dissemination: in round k each tells the one 2^k places further and waits for the one 2^k places
// before; after the last round each has heard, directly or not, of all. What is told of a process goes towards its
// node: it takes the steps whose sum is the distance that is left, so it is told once in a round, and added up on the
// way. So one meeting is also a reduce-scatter of what there is to tell.
//
// Pure: the library's barrier of nodes and the simulation of large jobs (benchmarks/simulation) both go by it.
#pragma once

#include <cstdint>
#include <map>

namespace osc::sync {

/// One node's view.
struct Dissemination {
    std::uint32_t node = 0;
    std::uint32_t nodes = 1;

    std::uint32_t next(std::uint32_t distance) const { return (node + distance) % nodes; }
    std::uint32_t before(std::uint32_t distance) const { return (node + nodes - distance) % nodes; }

    /// Takes from `closes`, by process, what goes with the step of this distance, and hands it to
    /// tell(process, number). `node_of`: the node of a process.
    template <class NodeOf, class Tell>
    void take(std::map<std::uint32_t, std::uint32_t>& closes, std::uint32_t distance, NodeOf&& node_of,
              Tell&& tell) const {
        std::erase_if(closes, [&](const auto& entry) {
            const std::uint32_t left = (node_of(entry.first) + nodes - node) % nodes;
            if ((left & distance) == 0) return false;
            tell(entry.first, entry.second);
            return true;
        });
    }
};

}  // namespace osc::sync
