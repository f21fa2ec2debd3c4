// Dissemination barriers of nodes: after the last round each node has heard from all, and the counts for each process
// have arrived at its node completely, for every number of nodes.
#include "sync/dissemination.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace osc::sync {
namespace {

using Closes = std::map<std::uint32_t, std::uint32_t>;

struct Node {
    std::set<std::uint32_t> heard;
    Closes closes;
};

// One barrier; each(node) is called with the counts that a node sends in a step.
template <class Each>
void meet(std::vector<Node>& all, std::uint32_t per_node, Each&& each) {
    const auto nodes = static_cast<std::uint32_t>(all.size());
    for (std::uint32_t distance = 1; distance < nodes; distance *= 2) {
        std::vector<Node> told(nodes);
        for (std::uint32_t node = 0; node < nodes; ++node) {
            const Dissemination meeting{node, nodes};
            EXPECT_EQ((Dissemination{meeting.next(distance), nodes}.before(distance)), node);
            Node& next = told[meeting.next(distance)];
            next.heard = all[node].heard;
            meeting.take(
                all[node].closes, distance, [&](std::uint32_t process) { return process / per_node; },
                [&](std::uint32_t process, std::uint32_t closes) { next.closes[process] += closes; });
            each(next);
        }
        for (std::uint32_t node = 0; node < nodes; ++node) {
            all[node].heard.merge(told[node].heard);
            for (const auto& [process, closes] : told[node].closes)
                all[node].closes[process] += closes;
        }
    }
}

class Meeting : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Meeting, AllNodesHearFromAllAndCountsArrive) {
    constexpr std::uint32_t kPerNode = 3;
    const std::uint32_t nodes = GetParam();
    const std::uint32_t processes = nodes * kPerNode;
    std::vector<Node> all(nodes);
    Closes sum;
    for (std::uint32_t node = 0; node < nodes; ++node) {
        all[node].heard = {node};
        // To all processes, of each node another number.
        for (std::uint32_t process = 0; process < processes; ++process) {
            all[node].closes[process] = node + 1 + process % 2;
            sum[process] += node + 1 + process % 2;
        }
    }
    meet(all, kPerNode, [](const Node&) {});
    for (std::uint32_t node = 0; node < nodes; ++node) {
        EXPECT_EQ(all[node].heard.size(), nodes);
        Closes own;
        for (std::uint32_t process = node * kPerNode; process < (node + 1) * kPerNode; ++process)
            own[process] = sum[process];
        EXPECT_EQ(all[node].closes, own) << "node " << node << " of " << nodes;
    }
}

// A step sends counts for used targets only, for every number of nodes.
TEST_P(Meeting, UnusedTargetsSendNoCounts) {
    const std::uint32_t nodes = GetParam();
    std::vector<Node> all(nodes);
    all[0].closes[nodes - 1] = 1;
    std::size_t most = 0;
    meet(all, 1, [&](const Node& told) { most = std::max(most, told.closes.size()); });
    EXPECT_LE(most, 1u);
    EXPECT_EQ(all[nodes - 1].closes, (Closes{{nodes - 1, 1}}));
}

// The gather: each node ends with the blocks of all, from its own on.
TEST_P(Meeting, BlocksOfAllArriveInOrder) {
    const std::uint32_t nodes = GetParam();
    std::vector<std::vector<std::uint32_t>> all(nodes);
    for (std::uint32_t node = 0; node < nodes; ++node)
        all[node] = {node};
    for (std::uint32_t distance = 1; distance < nodes; distance *= 2) {
        const std::vector<std::vector<std::uint32_t>> before = all;
        for (std::uint32_t node = 0; node < nodes; ++node) {
            const Dissemination meeting{node, nodes};
            const std::vector<std::uint32_t>& from = before[meeting.next(distance)];
            ASSERT_GE(from.size(), meeting.blocks(distance));
            all[node].insert(all[node].end(), from.begin(), from.begin() + meeting.blocks(distance));
        }
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
        ASSERT_EQ(all[node].size(), nodes);
        for (std::uint32_t ahead = 0; ahead < nodes; ++ahead)
            EXPECT_EQ(all[node][ahead], (node + ahead) % nodes);
    }
}

INSTANTIATE_TEST_SUITE_P(Nodes, Meeting, ::testing::Values(1u, 2u, 3u, 4u, 5u, 7u, 8u, 12u, 16u, 33u, 100u));

}  // namespace
}  // namespace osc::sync
