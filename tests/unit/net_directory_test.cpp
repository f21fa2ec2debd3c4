// Processes of nodes of several: their addresses are looked up at keepers, and a process takes its own address with its
// first message.
// Level: gate
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "net_processes.h"

namespace osc::test {
namespace {

using Found = net::Directory::Found;

// Three nodes: ranks 0 to 2, 3 to 5, 6 to 8. Rank 0 and rank 3 keep the addresses of ranks 1 and 2.
JobSetup three_nodes(Progress progress = Progress::Callers) {
    JobSetup setup = plain_setup();
    setup.processes = 9;
    setup.per_node = 3;
    setup.progress = progress;
    return setup;
}

void put(Processes& all, std::uint32_t origin, std::uint32_t target) {
    const std::uint64_t value = 100 + origin;
    ASSERT_EQ(all[origin].operate(target, [&](Transport& t) { t.put(8 * origin, &value, sizeof value); }), Fault::None);
    ASSERT_EQ(all[origin].far->complete_ops(target), Fault::None);
    EXPECT_EQ(all[target].memory[origin], value);
}

TEST(Directory, ProcessesReachEachOther) {
    Deadline deadline(60);
    Processes all(three_nodes());
    ASSERT_GT(all.table().size.others_bytes, 0u);
    for (std::uint32_t origin = 0; origin < all.size(); ++origin)
        for (std::uint32_t target = 0; target < all.size(); ++target)
            if (origin != target) put(all, origin, target);
    for (std::uint32_t rank = 0; rank < all.size(); ++rank)
        EXPECT_EQ(all[rank].network.counts().strangers.load(), 0u);
}

// One request of a node for a node, and none for its first process.
TEST(Directory, ANodeAsksOnceForANode) {
    Deadline deadline(60);
    Processes all(three_nodes());
    const auto asks = [&](std::uint32_t origin, std::uint32_t target) {
        const std::uint64_t before = all[origin].network.counts().requests.load();
        EXPECT_NE(all[origin].far->connect(target), nullptr);
        return all[origin].network.counts().requests.load() - before;
    };
    EXPECT_EQ(asks(4, 0), 0u);
    EXPECT_EQ(asks(4, 5), 0u);  // of its own node
    EXPECT_EQ(asks(4, 7), 1u);
    EXPECT_EQ(asks(4, 8), 0u);
    EXPECT_EQ(asks(5, 7), 0u);
    EXPECT_EQ(asks(4, 2), 0u);  // the first process of this node keeps these
    EXPECT_EQ(asks(7, 1), 1u);
    EXPECT_EQ(asks(6, 2), 0u);
}

TEST(Directory, FindingDoesNotWait) {
    Deadline deadline(60);
    Processes all(three_nodes());
    net::Connection* peer = nullptr;
    net::Directory& directory = all[8].network.directory;
    // The keeper may not have admitted the team yet, and would drop the look-up.
    all[8].job.admitted = false;
    EXPECT_EQ(directory.find(all[8].job, 1, peer), Found::Asked);
    EXPECT_TRUE(directory.alive(all[8].job, 1));
    EXPECT_EQ(all[8].network.counts().requests.load(), 0u);
    all[8].job.admitted = true;
    EXPECT_EQ(directory.find(all[8].job, 1, peer), Found::Asked);
    EXPECT_EQ(directory.find(all[8].job, 1, peer), Found::Asked);
    EXPECT_TRUE(directory.alive(all[8].job, 1));
    EXPECT_EQ(all[8].network.counts().requests.load(), 1u);
    for (int i = 0; i < 1000 && directory.find(all[8].job, 1, peer) == Found::Asked; ++i)
        all.step();
    ASSERT_NE(peer, nullptr);
    EXPECT_EQ(peer->token, all.addresses()[1].token);
    all.went_on();
}

// The first process of a node does not answer: that of the next one does. Without both there is no way.
TEST(Directory, TheNextNodeKeepsTheAddressesToo) {
    static auto* const left = new std::vector<std::unique_ptr<Processes>>;  // its operations on the dead never end
    Deadline deadline(120);
    JobSetup setup = three_nodes(Progress::Thread);
    setup.timeout_ms = 300;
    setup.behaviour.dead = fake::DeadPeer::Silent;
    left->push_back(std::make_unique<Processes>(setup));
    Processes& all = *left->back();
    all.fabric().kill(0);
    put(all, 7, 1);
    EXPECT_EQ(all[7].network.counts().requests.load(), 4u);  // two look-ups, one of the target, and the put
    all.fabric().kill(3);
    all.fabric().kill(6);
    // Of node 1: rank 3 and rank 6 know ranks 4 and 5, and no process of node 0 does.
    EXPECT_EQ(all[1].far->connect(5), nullptr);
    EXPECT_NE(std::strstr(base::fault_text(), "rank 5 cannot be reached"), nullptr);
    EXPECT_EQ(all[2].far->connect(5), nullptr);
    put(all, 7, 2);
}

// The process that asks has died, or ends its part in the team: another one of its node asks.
TEST(Directory, AnotherProcessOfTheNodeGoesOn) {
    Deadline deadline(60);
    Processes all(three_nodes());
    net::Connection* peer = nullptr;
    const auto find = [&](std::uint32_t origin) {
        return all[origin].network.directory.find(all[origin].job, 7, peer);
    };
    const auto asked = [&](std::uint32_t origin) { return all[origin].network.counts().requests.load(); };
    all[4].job.look_up(2).store(3 + 1);
    EXPECT_EQ(find(4), Found::Asked);
    EXPECT_EQ(asked(4), 0u);
    all[4].ranks.lives().kill(3);
    EXPECT_EQ(find(4), Found::Asked);
    EXPECT_EQ(asked(4), 1u);
    EXPECT_EQ(find(5), Found::Asked);
    EXPECT_EQ(asked(5), 0u);
    all[4].job.end_look_ups();
    EXPECT_EQ(find(5), Found::Asked);
    EXPECT_EQ(asked(5), 1u);
    for (int i = 0; i < 1000 && find(5) == Found::Asked; ++i)
        all.step();
    EXPECT_NE(peer, nullptr);
    all.went_on();
}

// Only a process of the team is believed, and only its own address.
TEST(Directory, AStrangerCannotIntroduceItself) {
    Deadline deadline(60);
    Processes all(three_nodes());
    net::Connections& connections = all[3].network.connections;
    net::ProcessAddress address = all.addresses()[1];
    const auto meets = [&](std::uint64_t token, std::size_t bytes) {
        return connections.meet(token, reinterpret_cast<const std::byte*>(&address), bytes) != nullptr;
    };
    EXPECT_FALSE(meets(address.token, sizeof address - 8));
    EXPECT_FALSE(meets(all.addresses()[2].token, sizeof address));
    address.token ^= 1024;
    EXPECT_FALSE(meets(address.token, sizeof address));
    EXPECT_EQ(connections.find(all.addresses()[1].token), nullptr);
    EXPECT_EQ(connections.find(address.token), nullptr);
    address = all.addresses()[1];
    EXPECT_TRUE(meets(address.token, sizeof address));
    // A process whose address is not known yet sends nothing that counts.
    EXPECT_EQ(connections.sender(all.addresses()[7].token), nullptr);
    EXPECT_NE(connections.sender(all.addresses()[6].token), nullptr);
}

// A message without this process's address has come to a process that did not have it: the next one takes it along.
TEST(Directory, AProcessIntroducesItselfUntilItIsAnswered) {
    Deadline deadline(60);
    Processes all(three_nodes());
    net::NetworkStack& origin = all[4].network;
    net::Connection* const target = origin.connections.connect(all.addresses()[1]);
    ASSERT_NE(target, nullptr);
    EXPECT_TRUE(origin.messenger.alive(*target));
    const std::atomic<std::uint64_t>& dropped = all[1].network.counts().strangers;
    for (int i = 0; i < 1000 && dropped.load() == 0; ++i)
        all.step();
    EXPECT_EQ(dropped.load(), 1u);
    put(all, 4, 1);
    EXPECT_EQ(dropped.load(), 1u);
}

// A look-up of another team, or of what the node does not know, is answered without an address.
TEST(Directory, AKeeperAnswersForItsPartsOnly) {
    Deadline deadline(60);
    Processes all(three_nodes());
    std::vector<std::byte> others;
    net::Connections& of_3 = all[3].network.connections;
    EXPECT_TRUE(of_3.copy_others(0, 4, others));
    EXPECT_TRUE(of_3.copy_others(0, 1, others));
    EXPECT_FALSE(of_3.copy_others(0, 7, others));
    EXPECT_FALSE(of_3.copy_others(0, 9, others));
    EXPECT_FALSE(of_3.copy_others(1, 1, others));
}

// Threads that find the same processes at once, and processes that find each other.
TEST(Directory, ThreadsLookUpAtOnce) {
    Deadline deadline(120);
    for (int round = 0; round < 5; ++round) {
        Processes all(three_nodes(Progress::Thread));
        in_threads(4, [&](std::uint32_t thread) {
            const std::uint32_t origin = thread < 2 ? 4 : 1;
            for (const std::uint32_t target : {2u, 7u, 8u, 5u, 0u})
                EXPECT_NE(all[origin].far->connect(target), nullptr);
        });
        put(all, 4, 1);
        put(all, 1, 4);
    }
}

}  // namespace
}  // namespace osc::test
