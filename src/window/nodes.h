// Which processes of a communicator are one node: those that the host MPI says share one, and those on one machine
// (shm::machine_number) that the host takes for separate nodes.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

namespace osc {

/// The first process of the node of process `at`. `cards[r].node` is a process of r's node with no higher rank, r
/// itself for the first one.
template <class Card>
std::int32_t first_of_node(std::span<Card> cards, std::int32_t at) {
    const auto node = [&](std::int32_t rank) -> std::int32_t& { return cards[static_cast<std::size_t>(rank)].node; };
    while (node(at) != at)
        at = node(at) = node(node(at));
    return at;
}

/// Joins the nodes that hold processes of the same machine. Every card has `node`, the rank of the first process of the
/// node by the host (its own card says the same), and `machine`, 0 for a process whose node is the host's. Afterwards
/// `node` is the first process of the joined node. True if some node has grown. Takes memory by the number of machines.
template <class Card>
bool join_nodes(std::span<Card> cards) {
    std::unordered_map<std::uint64_t, std::int32_t> first_on;
    bool grown = false;
    for (std::int32_t rank = 0; static_cast<std::size_t>(rank) < cards.size(); ++rank) {
        const std::uint64_t machine = cards[static_cast<std::size_t>(rank)].machine;
        if (machine == 0) continue;
        const std::int32_t one = first_of_node(cards, first_on.try_emplace(machine, rank).first->second);
        const std::int32_t other = first_of_node(cards, rank);
        if (one == other) continue;
        cards[static_cast<std::size_t>(one < other ? other : one)].node = one < other ? one : other;
        grown = true;
    }
    for (std::int32_t rank = 0; static_cast<std::size_t>(rank) < cards.size(); ++rank)
        cards[static_cast<std::size_t>(rank)].node = first_of_node(cards, rank);
    return grown;
}

}  // namespace osc
