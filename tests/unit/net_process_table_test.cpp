// The process table: addresses come back from what nodes send each other, for every placement of the processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "net/process_table.h"
#include "table_of.h"

namespace osc {
namespace {

std::vector<net::ProcessAddress> addresses_of(std::uint32_t processes, std::uint32_t per_node,
                                              std::mt19937_64& random) {
    std::vector<net::ProcessAddress> all(processes);
    const std::uint64_t base = random();
    for (std::uint32_t rank = 0; rank < processes; ++rank) {
        all[rank].token = base ^ rank;
        all[rank].secret = 7;
        const std::uint32_t host = 0x0a000000 + rank / per_node;
        const auto port = static_cast<std::uint16_t>(random());
        all[rank].address.size = 16;
        std::memcpy(all[rank].address.bytes + 2, &port, sizeof port);
        std::memcpy(all[rank].address.bytes + 4, &host, sizeof host);
        all[rank].lifeline = {host, static_cast<std::uint16_t>(random()), 0};
    }
    return all;
}

bool same(const net::ProcessAddress& a, const net::ProcessAddress& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(ProcessTable, FindsEachProcessByItsToken) {
    std::mt19937_64 random(1);
    for (const std::uint32_t processes : {1u, 2u, 100u, 300u}) {
        const std::vector<net::ProcessAddress> all = addresses_of(processes, 1, random);
        std::vector<std::uint64_t> memory;
        const net::ProcessTable table = table_of(all, memory);
        for (std::uint32_t rank = 0; rank < processes; ++rank) {
            EXPECT_EQ(table.tokens[rank], all[rank].token);
            EXPECT_EQ(table.find(all[rank].token), rank);
            EXPECT_TRUE(same(table.first_address(rank), all[rank]));
        }
        EXPECT_EQ(table.find(all[0].token ^ processes ^ 1024), net::ProcessTable::kUnknown);
        EXPECT_EQ(table.find(~all[0].token), net::ProcessTable::kUnknown);
        // The last part ends where the table does.
        EXPECT_EQ(table.parts.data() + table.parts.size() - reinterpret_cast<std::byte*>(memory.data()),
                  static_cast<std::ptrdiff_t>(net::ProcessTable::bytes(table.size, table.form)));
    }
}

// Networks that other teams have opened: no token tells its rank here.
TEST(ProcessTable, FindsTokensInAnyOrder) {
    std::mt19937_64 random(2);
    std::vector<net::ProcessAddress> all = addresses_of(50, 1, random);
    for (net::ProcessAddress& one : all)
        one.token = random(), one.secret = random();
    std::vector<std::uint64_t> memory;
    for (const std::uint32_t per_node : {1u, 5u}) {
        std::vector<std::vector<std::uint32_t>> nodes(all.size() / per_node);
        for (std::uint32_t rank = 0; rank < all.size(); ++rank)
            nodes[rank / per_node].push_back(rank);
        const net::ProcessTable table = table_of(all, memory, nodes);
        EXPECT_EQ(table.size.others_bytes, 0u);
        for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
            EXPECT_EQ(table.find(all[rank].token), rank);
            EXPECT_TRUE(same(table.address(rank, table.place_of(rank)), all[rank]));
        }
    }
}

// Processes placed by blocks, round the nodes, and at random.
TEST(ProcessTable, PartsBringTheAddressesOfNodes) {
    std::mt19937_64 random(3);
    constexpr std::uint32_t kProcesses = 96;
    constexpr std::uint32_t kPerNode = 8;
    constexpr std::uint32_t kNodes = kProcesses / kPerNode;
    const std::vector<net::ProcessAddress> made = addresses_of(kProcesses, kPerNode, random);
    for (const std::uint32_t placement : {0u, 1u, 2u}) {
        std::vector<std::uint32_t> rank_of(kProcesses);  // of the processes of the nodes, in turn
        for (std::uint32_t i = 0; i < kProcesses; ++i)
            rank_of[i] = placement == 1 ? i / kPerNode + i % kPerNode * kNodes : i;
        if (placement == 2) std::shuffle(rank_of.begin(), rank_of.end(), random);
        std::vector<net::ProcessAddress> all(kProcesses);
        std::vector<std::vector<std::uint32_t>> nodes(kNodes);
        for (std::uint32_t i = 0; i < kProcesses; ++i) {
            all[rank_of[i]] = made[i];
            all[rank_of[i]].token = made[0].token ^ rank_of[i];
            nodes[i / kPerNode].push_back(rank_of[i]);
        }
        for (std::vector<std::uint32_t>& node : nodes)
            std::ranges::sort(node);
        std::ranges::sort(nodes);  // by their first processes
        std::vector<std::uint64_t> memory;
        const net::ProcessTable table = table_of(all, memory, nodes);
        EXPECT_LE(table.size.part_bytes, placement == 2 ? 104u : 32u);
        EXPECT_EQ(table.size.others_bytes, 32u);
        for (std::uint32_t node = 0; node < kNodes; ++node)
            for (const std::uint32_t rank : nodes[node]) {
                EXPECT_EQ(table.node_of(rank), node);
                EXPECT_EQ(table.find(all[rank].token), rank);
                const net::ProcessTable::Place place = table.place_of(rank);
                EXPECT_EQ(place.part, node);
                EXPECT_EQ(table.knows(place), rank == nodes[node][0]);
                EXPECT_NE(table.neighbour_of(rank), rank);
                EXPECT_EQ(table.node_of(table.neighbour_of(rank)), node);
            }
        for (std::uint32_t node = 0; node < kNodes; ++node) {
            enter_others(table, node, all, nodes[node]);
            for (const std::uint32_t rank : nodes[node]) {
                EXPECT_TRUE(table.knows(table.place_of(rank)));
                EXPECT_TRUE(same(table.address(rank, table.place_of(rank)), all[rank]));
            }
        }
    }
}

}  // namespace
}  // namespace osc
