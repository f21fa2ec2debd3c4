// A dissemination barrier of nodes. In round k node i sends to node i + 2^k and waits for node i - 2^k; after the last
// round each node has heard, directly or not, from all. The messages also carry counts for processes: a count moves
// towards the node of its process, in the steps whose sum is the remaining distance, and equal destinations are added
// up on the way. So one barrier is also a reduce-scatter of the counts.
//
// The same rounds, the other way round, gather (Bruck's algorithm): a node begins with its own block and ends with the
// blocks of all, from its own on, in the order of the nodes. In the round of a distance it sends its first blocks to
// node i - 2^k, and receives as many from node i + 2^k behind those that it has.
//
// No communication here: the library's barrier of nodes and the simulation of large jobs (benchmarks/simulation) both
// use this arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace osc::sync {

/// One node's view.
struct Dissemination {
    std::uint32_t node = 0;
    std::uint32_t nodes = 1;

    std::uint32_t next(std::uint32_t distance) const { return (node + distance) % nodes; }
    std::uint32_t before(std::uint32_t distance) const { return (node + nodes - distance) % nodes; }

    /// How many blocks a round of the gather sends.
    std::uint32_t blocks(std::uint32_t distance) const { return std::min(distance, nodes - distance); }

    /// Removes from `closes`, by process, the counts that travel with the step of this distance, and passes each to
    /// send(process, count). `node_of`: the node of a process.
    template <class NodeOf, class Send>
    void take(std::map<std::uint32_t, std::uint32_t>& closes, std::uint32_t distance, NodeOf&& node_of,
              Send&& send) const {
        std::erase_if(closes, [&](const auto& entry) {
            const std::uint32_t left = (node_of(entry.first) + nodes - node) % nodes;
            if ((left & distance) == 0) return false;
            send(entry.first, entry.second);
            return true;
        });
    }
};

}  // namespace osc::sync
