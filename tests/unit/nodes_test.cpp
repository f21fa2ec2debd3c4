// Which processes become one node: by the host's answer, by machine, and by both in chains.
#include "window/nodes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "shm/machine.h"

namespace {

struct ProcessAddress {
    std::int32_t node;
    std::uint64_t machine;
};

std::vector<std::int32_t> nodes_of(std::vector<ProcessAddress> cards, bool grown) {
    std::vector<std::int32_t> room(cards.size());
    EXPECT_EQ(osc::join_nodes(std::span(cards), std::span(room)), grown);
    std::vector<std::int32_t> nodes;
    for (const ProcessAddress& card : cards)
        nodes.push_back(card.node);
    return nodes;
}

using Nodes = std::vector<std::int32_t>;

TEST(Nodes, AHostThatSeesEveryProcessAlone) {
    EXPECT_EQ(nodes_of({{0, 7}, {1, 9}, {2, 7}, {3, 9}}, true), (Nodes{0, 1, 0, 1}));
}

TEST(Nodes, AHostThatSeesAllThatTheMachineHas) {
    EXPECT_EQ(nodes_of({{0, 7}, {1, 9}, {0, 7}, {1, 9}}, false), (Nodes{0, 1, 0, 1}));
}

TEST(Nodes, AHostThatSeesMore) {
    EXPECT_EQ(nodes_of({{0, 7}, {0, 9}, {0, 8}}, false), (Nodes{0, 0, 0}));
}

TEST(Nodes, ProcessesWithoutAMachineStayWhereTheHostSeesThem) {
    EXPECT_EQ(nodes_of({{0, 0}, {1, 0}, {2, 0}}, false), (Nodes{0, 1, 2}));
    EXPECT_EQ(nodes_of({{0, 0}, {1, 5}, {0, 0}, {3, 5}}, true), (Nodes{0, 1, 0, 1}));
}

TEST(Nodes, ChainsOfHostAndMachine) {
    // 1 and 4 by the host, 4 and 2 by machine, 2 and 3 by the host.
    EXPECT_EQ(nodes_of({{0, 1}, {1, 2}, {2, 3}, {2, 4}, {1, 3}}, true), (Nodes{0, 1, 1, 1, 1}));
}

// Against the definition: the least process that a chain of common nodes and common machines leads to.
TEST(Nodes, AgreesWithTheDefinition) {
    std::mt19937 random(3);
    for (int round = 0; round < 500; ++round) {
        const std::size_t size = 1 + random() % 20;
        std::vector<ProcessAddress> cards(size);
        std::vector<std::int32_t> host_class(size);
        for (std::size_t rank = 0; rank < size; ++rank) {
            host_class[rank] = static_cast<std::int32_t>(random() % size);
            cards[rank].machine = random() % (size + 1);
            std::size_t first = 0;
            while (host_class[first] != host_class[rank])
                ++first;
            cards[rank].node = static_cast<std::int32_t>(first);
        }
        Nodes wanted(size);
        for (std::size_t rank = 0; rank < size; ++rank)
            wanted[rank] = cards[rank].node;
        const Nodes before = wanted;
        for (bool moves = true; moves;) {
            moves = false;
            for (std::size_t a = 0; a < size; ++a)
                for (std::size_t b = 0; b < size; ++b) {
                    const bool one = host_class[a] == host_class[b] ||
                                     (cards[a].machine != 0 && cards[a].machine == cards[b].machine);
                    if (!one || wanted[a] >= wanted[b]) continue;
                    wanted[b] = wanted[a];
                    moves = true;
                }
        }
        EXPECT_EQ(nodes_of(cards, wanted != before), wanted);
    }
}

TEST(Machine, HasANumberThatStays) {
    EXPECT_NE(osc::shm::machine_number(), 0u);
    EXPECT_EQ(osc::shm::machine_number(), osc::shm::machine_number());
}

}  // namespace
