// The nodes of a communicator's processes: the host MPI's nodes, of which those on one machine (shm::machine_number)
// are joined.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

namespace osc {

/// The first process of the node of process `at`. `records[r].node` is a process of r's node with no higher rank, r
/// itself for the first one.
template <class Record>
std::int32_t first_of_node(std::span<Record> records, std::int32_t at) {
    const auto node = [&](std::int32_t rank) -> std::int32_t& { return records[static_cast<std::size_t>(rank)].node; };
    while (node(at) != at)
        at = node(at) = node(node(at));
    return at;
}

/// Joins nodes with processes of the same machine. Each record has `node`, the rank of the first process of its node by
/// the host, and `machine`, 0 for a process whose node must not be joined. Afterwards `node` is the first process of
/// the joined node. True if a node has grown. Its memory grows with the number of machines.
template <class Record>
bool join_nodes(std::span<Record> records) {
    std::unordered_map<std::uint64_t, std::int32_t> first_on;
    bool grown = false;
    for (std::int32_t rank = 0; static_cast<std::size_t>(rank) < records.size(); ++rank) {
        const std::uint64_t machine = records[static_cast<std::size_t>(rank)].machine;
        if (machine == 0) continue;
        const std::int32_t one = first_of_node(records, first_on.try_emplace(machine, rank).first->second);
        const std::int32_t other = first_of_node(records, rank);
        if (one == other) continue;
        records[static_cast<std::size_t>(one < other ? other : one)].node = one < other ? one : other;
        grown = true;
    }
    for (std::int32_t rank = 0; static_cast<std::size_t>(rank) < records.size(); ++rank)
        records[static_cast<std::size_t>(rank)].node = first_of_node(records, rank);
    return grown;
}

}  // namespace osc
