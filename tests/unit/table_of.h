// A process table, made as a team makes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "net/process_table.h"

namespace osc {

/// The processes of nodes, by node; each process its own node.
inline std::vector<std::vector<std::uint32_t>> nodes_of_one(std::size_t processes) {
    std::vector<std::vector<std::uint32_t>> nodes(processes);
    for (std::uint32_t rank = 0; rank < processes; ++rank)
        nodes[rank] = {rank};
    return nodes;
}

/// The addresses of a node's processes, of those of all ranks.
inline std::vector<net::ProcessAddress> of_node(std::span<const net::ProcessAddress> by_rank,
                                                std::span<const std::uint32_t> ranks) {
    std::vector<net::ProcessAddress> its;
    for (const std::uint32_t rank : ranks)
        its.push_back(by_rank[rank]);
    return its;
}

/// Enters the others of a node, if parts have none.
inline void enter_others(const net::ProcessTable& table, std::uint32_t node,
                         std::span<const net::ProcessAddress> by_rank, std::span<const std::uint32_t> ranks) {
    if (table.size.others_bytes == 0) return;
    std::vector<std::byte> others(table.others_of(node).size());
    table.form.write_others(of_node(by_rank, ranks), others.data());
    table.enter_others(node, others);
}

/// The table of processes with these addresses, by rank, on these nodes, in `memory`.
inline net::ProcessTable table_of(std::span<const net::ProcessAddress> by_rank, std::vector<std::uint64_t>& memory,
                                  const std::vector<std::vector<std::uint32_t>>& nodes) {
    std::vector<net::ProcessAddress> addresses(by_rank.begin(), by_rank.end());
    for (std::uint32_t rank = 0; rank < addresses.size(); ++rank)
        addresses[rank].token ^= rank;
    net::AddressDifferences all;
    for (const std::vector<std::uint32_t>& node : nodes)
        for (const std::uint32_t rank : node) {
            const net::AddressDifferences its(addresses[rank], addresses[0], addresses[node[0]]);
            for (std::size_t at = 0; at < all.in_team.size(); ++at) {
                all.in_team[at] |= its.in_team[at];
                all.in_node[at] |= its.in_node[at];
            }
        }
    const net::AddressForm form(addresses[0], all);
    const auto count = static_cast<std::uint32_t>(nodes.size());
    net::ProcessTable::Size size{static_cast<std::uint32_t>(addresses.size()), count, count, 0, 0};
    std::size_t others = 0;
    for (const std::vector<std::uint32_t>& node : nodes) {
        size.part_bytes = std::max(size.part_bytes, form.part_bytes(node));
        others = std::max(others, form.others_bytes(node.size()));
    }
    const bool sends_others = form.sends_others(others);
    (sends_others ? size.part_bytes : size.others_bytes) += others;
    memory.assign(net::ProcessTable::bytes(size, form) / sizeof memory[0] + 1, 0);
    net::ProcessTable table = net::ProcessTable::at(reinterpret_cast<std::byte*>(memory.data()), size, form);
    for (std::uint32_t node = 0; node < count; ++node) {
        form.write_part(nodes[node], of_node(addresses, nodes[node]), sends_others,
                        table.parts.data() + node * size.part_bytes);
        table.leaders[node] = nodes[node][0];
        table.enter(node, nodes[node][0], node);
    }
    return table;
}
inline net::ProcessTable table_of(std::span<const net::ProcessAddress> addresses, std::vector<std::uint64_t>& memory) {
    return table_of(addresses, memory, nodes_of_one(addresses.size()));
}

}  // namespace osc
