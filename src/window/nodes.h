// The nodes of a communicator's processes: those of one host's name (shm::host_number), or the host MPI's nodes, of
// which those on one machine (shm::machine_number) are joined.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

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
/// the joined node. True if a node has grown. `by_machine`: room for a number for each record.
template <class Record>
bool join_nodes(std::span<Record> records, std::span<std::int32_t> by_machine) {
    const auto machine = [&](std::int32_t rank) { return records[static_cast<std::size_t>(rank)].machine; };
    std::iota(by_machine.begin(), by_machine.end(), 0);
    std::sort(by_machine.begin(), by_machine.end(), [&](std::int32_t a, std::int32_t b) {
        return machine(a) != machine(b) ? machine(a) < machine(b) : a < b;
    });
    bool grown = false;
    for (std::size_t at = 1; at < records.size(); ++at) {
        const std::int32_t rank = by_machine[at];
        if (machine(rank) == 0 || machine(rank) != machine(by_machine[at - 1])) continue;
        const std::int32_t one = first_of_node(records, by_machine[at - 1]);
        const std::int32_t other = first_of_node(records, rank);
        if (one == other) continue;
        records[static_cast<std::size_t>(std::max(one, other))].node = std::min(one, other);
        grown = true;
    }
    for (std::int32_t rank = 0; static_cast<std::size_t>(rank) < records.size(); ++rank)
        records[static_cast<std::size_t>(rank)].node = first_of_node(records, rank);
    return grown;
}

}  // namespace osc
