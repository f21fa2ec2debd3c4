// Connections that fail while the peer lives, peers that are silent and live, and messages that this process has no
// memory for: no death. Processes over the fake fabric, with lifelines on the loopback interface.
// Level: gate
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "net_processes.h"

namespace osc::test {
namespace {

using net::Protocol;
using net::Status;
using When = net::FabricSender::When;

constexpr const char* kLost = "the connection to rank 1 is lost: the network has failed, not the process";

JobSetup setup_of(fake::DeadPeer unreachable, Protocol protocol = Protocol::Buffered) {
    JobSetup setup;
    setup.processes = 2;
    setup.bytes = std::size_t{1} << 16;
    setup.protocol = protocol;
    setup.progress = Progress::Thread;
    setup.lifelines = true;
    setup.timeout_ms = 1000;
    setup.behaviour.dead = unreachable;
    setup.behaviour.full = 0;
    return setup;
}

// The fabric reaches process 1 no more after kill(1), but that process runs on, with its lifeline.
struct Pair {
    explicit Pair(const JobSetup& setup) : all(setup) {
        EXPECT_EQ(put(8), Fault::None);
        EXPECT_EQ(complete_ops(), Fault::None);
    }
    Fault put(std::size_t bytes) {
        static const std::array<std::byte, 40000> kData{};
        return all[0].operate(1, [&](Transport& t) { t.put(0, kData.data(), bytes); });
    }
    Fault complete_ops() { return all[0].far->complete_ops(1); }
    net::Connection& connection(std::uint32_t from) {
        return *all[from].network.connections.connect(all.table().first_address(1 - from));
    }
    /// Asks until the connection has ended, or for as long; how it has.
    Status end_of(std::uint32_t from, std::int64_t ns) {
        net::Connection& to = connection(from);
        for (const std::int64_t end = now_ns() + ns; now_ns() < end; ::usleep(1000))
            if (!all[from].network.messenger.alive(to)) break;
        return to.end.load();
    }

    Deadline deadline{120};
    Processes all;
};

constexpr std::int64_t kPatience = 20000000000;  // ns

// A provider may keep the operations that it does not end: they are left to it, with the whole fabric.
std::span<const std::unique_ptr<Pair>> left_pairs(std::initializer_list<JobSetup> setups) {
    static auto* const left = new std::vector<std::unique_ptr<Pair>>;
    for (const JobSetup& setup : setups)
        left->push_back(std::make_unique<Pair>(setup));
    return std::span(*left).last(setups.size());
}
Pair& left_pair(const JobSetup& setup) {
    return *left_pairs({setup}).front();
}

TEST(FabricLost, AnErrorWhileThePeerLivesIsNoDeath) {
    const auto errors = [](Protocol protocol) { return setup_of(fake::DeadPeer::Errors, protocol); };
    at_once(left_pairs({errors(Protocol::Buffered), errors(Protocol::Direct)}), [](Pair& pair) {
        const std::uint64_t value = 7;
        net::SharedCompletion request = pair.all[0].request(1, [&](Transport& t) { t.put(0, &value, sizeof value); });
        pair.all.fabric().kill(1);
        EXPECT_EQ(pair.put(40000), Fault::None);
        EXPECT_EQ(pair.complete_ops(), Fault::Dead);
        EXPECT_STREQ(base::fault_text(), kLost);
        pair.all[0].to(1).await(*request);
        EXPECT_TRUE(request->ended());
        // Later operations fail as well.
        const Fault again = pair.put(8);
        EXPECT_EQ(again != Fault::None ? again : pair.complete_ops(), Fault::Dead);
        EXPECT_STREQ(base::fault_text(), kLost);
        EXPECT_EQ(pair.connection(0).end.load(), Status::Lost);
        // The peer, whose messages nobody answers, learns that by the lifeline.
        EXPECT_EQ(pair.end_of(1, kPatience), Status::Lost);
    });
}

TEST(FabricLost, ASilentPeerThatLivesIsNotDead) {
    const auto silent = [](fake::DeadPeer silence) {
        JobSetup setup = setup_of(silence);
        setup.timeout_ms = 300;
        return setup;
    };
    at_once(left_pairs({silent(fake::DeadPeer::Full), silent(fake::DeadPeer::Silent)}), [](Pair& pair) {
        pair.all.fabric().kill(1);
        EXPECT_EQ(pair.end_of(0, 3 * 300000000), Status::Done);  // three times the timeout
    });
}

TEST(FabricLost, WithoutLifelinesTheTimeoutDecides) {
    JobSetup setup = setup_of(fake::DeadPeer::Silent);
    setup.timeout_ms = 300;
    Pair& pair = left_pair(setup);
    pair.all[0].network.connections.ignore_lifelines();
    pair.all.fabric().kill(1);
    EXPECT_EQ(pair.end_of(0, kPatience), Status::PeerDied);
}

// A peer whose connection to this process has ended may still send what this process awaits, until the time-out.
TEST(FabricLost, APeerThatHasGivenUpMayStillSend) {
    JobSetup setup = setup_of(fake::DeadPeer::Silent);
    setup.timeout_ms = 60000;
    Pair& pair = left_pair(setup);
    pair.all.fabric().kill(1);
    pair.all[1].network.connections.end(pair.connection(1), Status::Lost);
    EXPECT_EQ(pair.end_of(0, 1000000000), Status::Done);
}

TEST(FabricLost, ASilentPeerIsInDoubtUntilItIsHeard) {
    Pair& pair = left_pair(setup_of(fake::DeadPeer::Silent));
    net::NetworkStack& network = pair.all[0].network;
    net::Connection& to = pair.connection(0);
    pair.all.fabric().kill(1);
    const auto still = network.engine.seize();  // no other thread looks
    const std::vector<net::Connection*> none;
    to.heard.store(0);
    EXPECT_TRUE(network.messenger.alive(to));
    EXPECT_EQ(network.connections.in_doubt(), std::vector<net::Connection*>{&to});
    net::Connections::heard_from(to);
    EXPECT_EQ(network.connections.in_doubt(), none);
}

// The provider may keep the transfers of a wait that was given up for ever, and the stream with them.
TEST(FabricLost, AnAbandonedStreamIsKept) {
    JobSetup setup = setup_of(fake::DeadPeer::Silent, Protocol::Direct);
    setup.lifelines = false;
    setup.timeout_ms = 300;
    Pair& pair = left_pair(setup);
    net::Stream& flow = pair.all[0].to(1);
    EXPECT_FALSE(flow.abandon());
    pair.all.fabric().kill(1);
    EXPECT_EQ(pair.put(40000), Fault::None);
    EXPECT_EQ(pair.complete_ops(), Fault::Dead);
    EXPECT_TRUE(flow.abandon());
}

// A ping finds out that a connection is lost, also where messages before it wait to be sent with the next one, and the
// provider does not say what becomes of small messages.
TEST(FabricLost, APingTravelsAlone) {
    Pair& pair = left_pair(setup_of(fake::DeadPeer::Errors));
    net::NetworkStack& network = pair.all[0].network;
    net::Connection& to = pair.connection(0);
    pair.all.fabric().kill(1);
    net::Frame frame;
    frame.kind = net::FrameKind::Notice;
    net::Message* message = network.sender.claim();
    const net::Record record{net::Opcode::Post, Basic::None, Op::None, 0, 0, 0};
    std::memcpy(message->body(), &record, sizeof record);
    message->bytes = sizeof record;
    {
        const auto still = network.engine.seize();  // nothing else sends what waits
        to.heard.store(0);
        network.sender.send(to, frame, message, When::Piggyback);
        EXPECT_TRUE(network.messenger.alive(to));  // sends the ping
    }
    EXPECT_EQ(pair.end_of(0, kPatience), Status::Lost);
}

TEST(FabricLost, MemoryThatCannotBeRegisteredIsNoDeath) {
    JobSetup setup = setup_of(fake::DeadPeer::Errors);
    setup.behaviour.largest_message = 1000;
    Pair pair(setup);
    const Fault fault = pair.put(4000);
    EXPECT_EQ(fault != Fault::None ? fault : pair.complete_ops(), Fault::NoMem);
    EXPECT_NE(std::string(base::fault_text()).find("ulimit -l"), std::string::npos) << base::fault_text();
    EXPECT_EQ(pair.connection(0).end.load(), Status::NoMemory);
    // No message overtakes the missing one.
    const Fault again = pair.put(8);
    EXPECT_EQ(again != Fault::None ? again : pair.complete_ops(), Fault::NoMem);
    EXPECT_EQ(pair.end_of(1, kPatience), Status::Lost);
}

}  // namespace
}  // namespace osc::test
