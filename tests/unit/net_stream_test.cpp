// The send queue of one origin to one target over the fake fabric: operations that share a message, the bound on
// requests in flight, direct accesses, and completions. One thread runs both processes, so every count is exact.
// Level: gate
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>

#include "net_processes.h"

namespace osc::test {
namespace {

using net::Protocol;

class Pair {
  public:
    explicit Pair(const JobSetup& setup) : all(setup) {
        origin.operate(1, [](Transport&) {});  // describes the target
        before_ = requests();
    }
    Fault put(std::int64_t disp, const void* from, std::size_t bytes) {
        return origin.operate(1, [&](Transport& t) { t.put(disp, from, bytes); });
    }
    Fault get(std::int64_t disp, void* to, std::size_t bytes) {
        return origin.operate(1, [&](Transport& t) { t.get(disp, to, bytes); });
    }
    Fault add(std::int64_t disp, const std::uint64_t& value, std::uint64_t* before = nullptr) {
        return origin.operate(1,
                              [&](Transport& t) { t.update(update_of(Op::Sum, Basic::U64), disp, &value, before, 1); });
    }
    Fault complete_ops() { return origin.far->complete_ops(1); }
    /// Requests since the last time.
    std::uint64_t sent() { return requests() - std::exchange(before_, requests()); }
    std::uint64_t* words() { return target.memory.data(); }

    Deadline deadline{60};
    Processes all;
    Process& origin = all[0];
    Process& target = all[1];

  private:
    std::uint64_t requests() const { return origin.network.counts().requests.load(); }
    std::uint64_t before_ = 0;
};

TEST(FabricStream, SmallOperationsShareOneMessage) {
    Pair pair(plain_setup());
    const std::uint64_t value = 7;
    for (std::int64_t i = 0; i < 100; ++i)
        EXPECT_EQ(pair.put(16 * i, &value, sizeof value), Fault::None);
    std::uint64_t before = 0;
    EXPECT_EQ(pair.add(8, value, &before), Fault::None);
    EXPECT_EQ(pair.sent(), 0u);
    EXPECT_EQ(pair.origin.incomplete.load(), 1u);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.sent(), 1u);
    EXPECT_EQ(pair.origin.incomplete.load(), 0u);
    for (std::size_t i = 0; i < 100; ++i)
        EXPECT_EQ(pair.words()[2 * i], 7u);
    EXPECT_EQ(pair.words()[1], 7u);
    EXPECT_EQ(before, 0u);
}

// A simple operation joins the message that is being filled, or begins one. The general path takes everything else.
TEST(FabricStream, SimpleOperationsJoinAMessage) {
    Pair pair(plain_setup());
    const std::uint64_t value = 7;
    std::uint64_t before[2] = {1, 1};
    net::Stream& stream = pair.origin.to(1);
    const Update how = update_of(Op::Sum, Basic::U64);
    const auto sum = [&](std::int64_t disp, std::uint64_t* back = nullptr) {
        const auto kind = back != nullptr ? op::OpKind::GetAccumulate : op::OpKind::Accumulate;
        return op::Simple{kind, 8, disp, &value, back, &how};
    };
    EXPECT_TRUE(stream.try_small(sum(0), false));  // begins it
    for (const bool threaded : {false, true}) {
        EXPECT_TRUE(stream.try_small(sum(8), threaded));
        EXPECT_TRUE(stream.try_small(sum(8, &before[threaded ? 1 : 0]), threaded));
        EXPECT_TRUE(stream.try_small({op::OpKind::Put, 8, 16, &value}, threaded));
        for (const std::int64_t outside : {std::int64_t{-8}, std::int64_t{(1 << 20) - 7}, std::int64_t{1} << 40,
                                           std::numeric_limits<std::int64_t>::max()})
            EXPECT_FALSE(stream.try_small(sum(outside), threaded)) << outside;
    }
    EXPECT_EQ(pair.sent(), 0u);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.sent(), 1u);
    EXPECT_EQ(pair.words()[0], 7u);
    EXPECT_EQ(pair.words()[1], 28u);
    EXPECT_EQ(pair.words()[2], 7u);
    EXPECT_EQ(before[0], 7u);
    EXPECT_EQ(before[1], 21u);
    EXPECT_EQ(pair.origin.incomplete.load(), 0u);
    // A full message is left to the general path, which sends it.
    EXPECT_EQ(pair.add(0, value), Fault::None);
    std::size_t added = 0;
    while (stream.try_small(sum(8), false))
        ++added;
    EXPECT_EQ(added, net::kBody / 24 - 1);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.words()[1], 28 + 7 * added);
    Pair alone(plain_setup(Protocol::Messages));
    EXPECT_EQ(alone.add(0, value), Fault::None);
    EXPECT_FALSE(alone.origin.to(1).try_small(sum(8), false));
    EXPECT_EQ(alone.complete_ops(), Fault::None);
}

TEST(FabricStream, AFullMessageIsSent) {
    Pair pair(plain_setup());
    std::vector<std::uint64_t> values(net::kBody / sizeof(std::uint64_t));
    std::iota(values.begin(), values.end(), 1);
    const std::size_t half = net::kBody / 2 / 8 * 8;
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(pair.put(i * 65536, values.data(), half), Fault::None);
    EXPECT_GE(pair.sent(), 3u);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    for (int i = 0; i < 8; ++i)
        EXPECT_EQ(std::memcmp(pair.target.bytes() + i * 65536, values.data(), half), 0);
}

TEST(FabricStream, EachOperationHasItsMessageWithProtocolMessages) {
    Pair pair(plain_setup(Protocol::Messages));
    const std::uint64_t value = 3;
    for (std::int64_t i = 0; i < 50; ++i)
        EXPECT_EQ(pair.add(0, value), Fault::None);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.sent(), 50u);
    EXPECT_EQ(pair.words()[0], 150u);
}

// At most eight requests are in flight: an origin that issues faster waits, and no operation is lost.
TEST(FabricStream, FlightsAreBounded) {
    JobSetup setup = plain_setup(Protocol::Messages);
    setup.behaviour.delay = 20;
    Pair pair(setup);
    const std::uint64_t value = 1;
    for (std::int64_t i = 0; i < 500; ++i) {
        EXPECT_EQ(pair.add(0, value), Fault::None);
        pair.all.went_on();
        EXPECT_LE(pair.sent(), 8u + 8u);
    }
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.words()[0], 500u);
}

// Calls for requests do not wait although eight are in flight: the messenger's backlog sends them later.
TEST(FabricStream, RequestsWaitForNothing) {
    JobSetup setup = plain_setup(Protocol::Messages);
    setup.behaviour.delay = 20;
    Pair pair(setup);
    std::array<std::uint64_t, 300> results{};
    const std::uint64_t one = 1;
    const Update how = update_of(Op::Sum, Basic::U64);
    std::vector<net::SharedCompletion> completions;
    const std::uint64_t polls = pair.all.fabric().totals().messages;
    for (std::uint64_t& result : results)
        completions.push_back(pair.origin.request(1, [&](Transport& t) { t.update(how, 0, &one, &result, 1); }));
    // Eight, as many as there are places; nothing was polled meanwhile.
    EXPECT_LE(pair.all.fabric().totals().messages - polls, 8u);
    EXPECT_FALSE(completions.back()->ended());
    pair.origin.to(1).await(*completions.back());
    for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_TRUE(completions[i]->ended());
        EXPECT_EQ(completions[i]->status(), net::Status::Done);
        EXPECT_EQ(results[i], i);
    }
}

TEST(FabricStream, LargeTransfersGoDirectlyInParts) {
    for (const bool virtual_addresses : {false, true}) {
        JobSetup setup = plain_setup(Protocol::Auto);
        setup.behaviour.virtual_addresses = virtual_addresses;
        setup.behaviour.largest_transfer = 4096;
        setup.behaviour.splits = 2;
        setup.behaviour.delay = 10;
        Pair pair(setup);
        std::vector<std::byte> mine(100000);
        for (std::size_t i = 0; i < mine.size(); ++i)
            mine[i] = static_cast<std::byte>(i * 13 >> 3);
        EXPECT_EQ(pair.put(123, mine.data(), mine.size()), Fault::None);
        EXPECT_EQ(pair.complete_ops(), Fault::None);
        EXPECT_EQ(pair.all.fabric().totals().writes, 25u);
        EXPECT_EQ(std::memcmp(pair.target.bytes() + 123, mine.data(), mine.size()), 0);
        std::vector<std::byte> back(mine.size());
        EXPECT_EQ(pair.get(123, back.data(), back.size()), Fault::None);
        EXPECT_EQ(pair.origin.far->complete_local(1), Fault::None);
        EXPECT_EQ(pair.all.fabric().totals().reads, 25u);
        EXPECT_EQ(back, mine);
        EXPECT_EQ(pair.sent(), 0u);
    }
}

// Few pieces are in flight, so that what travels behind them waits for few.
TEST(FabricStream, LongTransfersTravelInFewPiecesAtATime) {
    constexpr std::size_t kLong = (std::size_t{10} << 20) + 24;
    JobSetup setup = plain_setup(Protocol::Auto);
    setup.bytes = kLong;
    Pair pair(setup);
    std::vector<std::uint64_t> mine(kLong / sizeof(std::uint64_t));
    std::iota(mine.begin(), mine.end(), 1);
    const auto writes = [&] { return pair.all.fabric().totals().writes; };
    const net::SharedCompletion put = pair.origin.request(1, [&](Transport& t) { t.put(0, mine.data(), kLong); });
    EXPECT_EQ(writes(), 4u);
    EXPECT_FALSE(put->ended());
    pair.origin.to(1).await(*put);
    EXPECT_EQ(put->status(), net::Status::Done);
    EXPECT_EQ(writes(), 11u);
    EXPECT_EQ(std::memcmp(pair.target.bytes(), mine.data(), kLong), 0);
    std::vector<std::uint64_t> back(mine.size());
    EXPECT_EQ(pair.get(0, back.data(), kLong), Fault::None);
    EXPECT_EQ(pair.all.fabric().totals().reads, 4u);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.all.fabric().totals().reads, 11u);
    EXPECT_EQ(back, mine);
}

// One operation that is awaited next goes directly, unless the provider's transfers are too short for it.
TEST(FabricStream, OneOperationAloneGoesDirectly) {
    for (const std::size_t largest : {512u, 4096u}) {
        JobSetup setup = plain_setup(Protocol::Auto);
        setup.behaviour.largest_transfer = largest;
        setup.behaviour.direct_from = 32768;
        Pair pair(setup);
        std::array<std::uint64_t, 100> mine;
        std::iota(mine.begin(), mine.end(), 1);
        EXPECT_EQ(pair.put(8, mine.data(), sizeof mine), Fault::None);
        EXPECT_EQ(pair.complete_ops(), Fault::None);
        EXPECT_EQ(std::memcmp(pair.words() + 1, mine.data(), sizeof mine), 0);
        std::array<std::uint64_t, 100> back{};
        EXPECT_EQ(pair.get(8, back.data(), sizeof back), Fault::None);
        EXPECT_EQ(pair.complete_ops(), Fault::None);
        EXPECT_EQ(back, mine);
        const bool direct = largest >= sizeof mine;
        EXPECT_EQ(pair.all.fabric().totals().writes, direct ? 1u : 0u);
        EXPECT_EQ(pair.all.fabric().totals().reads, direct ? 1u : 0u);
        EXPECT_EQ(pair.sent(), direct ? 0u : 2u);
        const sync::Traffic traffic = pair.origin.to(1).take_traffic();
        EXPECT_EQ(traffic.gathered, direct ? 0u : 2 * (sizeof(net::Record) + sizeof mine));
        EXPECT_EQ(traffic.direct, direct ? 2 * sizeof mine : 0u);
    }
}

// More transfers than may be in flight: those with completions are queued and posted in order.
TEST(FabricStream, TransfersAreQueued) {
    JobSetup setup = plain_setup(Protocol::Direct);
    setup.behaviour.delay = 20;
    setup.behaviour.queue = 3;
    setup.behaviour.full = 300;
    Pair pair(setup);
    std::vector<std::uint64_t> mine(200);
    std::iota(mine.begin(), mine.end(), 1);
    std::vector<net::SharedCompletion> completions;
    for (std::size_t i = 0; i < mine.size(); ++i)
        completions.push_back(pair.origin.request(
            1, [&](Transport& t) { t.put(static_cast<std::int64_t>(8 * i), &mine[i], sizeof mine[i]); }));
    EXPECT_FALSE(completions.back()->ended());
    for (const net::SharedCompletion& completion : completions)
        pair.origin.to(1).await(*completion);
    EXPECT_EQ(std::memcmp(pair.words(), mine.data(), mine.size() * 8), 0);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.all.fabric().totals().writes, mine.size());
    EXPECT_GT(pair.all.fabric().totals().full, 0u);
}

// A lock, an operation and the unlock are one message; a direct access waits for the grant of the lock.
TEST(FabricStream, ALockTravelsWithItsOperations) {
    Pair pair(plain_setup(Protocol::Auto));
    const std::uint64_t value = 5;
    EXPECT_EQ(pair.origin.far->lock(1, sync::LockKind::Exclusive, false), Fault::None);
    EXPECT_EQ(pair.put(0, &value, sizeof value), Fault::None);
    pair.origin.far->unlock(1);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.sent(), 1u);
    EXPECT_EQ(pair.words()[0], 5u);
    const std::vector<std::byte> large(10000, std::byte{3});
    EXPECT_EQ(pair.origin.far->lock(1, sync::LockKind::Exclusive, false), Fault::None);
    EXPECT_EQ(pair.put(64, large.data(), large.size()), Fault::None);
    EXPECT_EQ(pair.all.fabric().totals().writes, 0u);  // the request for the lock has not been answered
    pair.origin.far->unlock(1);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.sent(), 2u);
    EXPECT_EQ(pair.all.fabric().totals().writes, 1u);
    EXPECT_EQ(std::memcmp(pair.target.bytes() + 64, large.data(), large.size()), 0);
}

// An operation outside of the window is the target's to refuse, with an error of the call that settles; then all goes
// on.
TEST(FabricStream, AFaultIsReportedOnce) {
    Pair pair(plain_setup(Protocol::Buffered, 4096));
    const std::uint64_t value = 5;
    EXPECT_EQ(pair.put(4096, &value, sizeof value), Fault::None);
    EXPECT_EQ(pair.complete_ops(), Fault::Range);
    EXPECT_STREQ(base::fault_text(), "memory that rank 1 does not expose in the window");
    EXPECT_EQ(pair.put(4088, &value, sizeof value), Fault::None);
    EXPECT_EQ(pair.complete_ops(), Fault::None);
    EXPECT_EQ(pair.words()[511], 5u);
}

struct Came final : net::ReplyHandler {
    void answered(net::Status, const std::byte*, std::size_t) override { ++replies; }
    int replies = 0;
};

// The reply to a request whose sender does not wait comes also while another process keeps the target busy.
TEST(FabricStream, ABusyTargetSendsDelayedReplies) {
    JobSetup setup = plain_setup();
    setup.processes = 3;
    Came delayed;
    Came awaited;
    Processes all(setup);
    const auto ask = [&](std::uint32_t origin, net::FrameKind kind, Came& reply) {
        net::NetworkStack& network = all[origin].network;
        net::Message* message = network.sender.claim();
        const net::Record record{net::Opcode::Get, Basic::None, Op::None, 0, 8, 0};
        std::memcpy(message->body(), &record, sizeof record);
        message->bytes = sizeof record;
        network.messenger.request(*network.connections.connect(all.table().first_address(0)), kind, Processes::kId,
                                  origin, message, reply, net::FabricSender::When::Now);
    };
    ask(1, net::FrameKind::DelayedReply, delayed);
    for (int step = 0; step < 100; ++step) {
        ask(2, net::FrameKind::Request, awaited);
        all.step();
    }
    EXPECT_EQ(delayed.replies, 1);
    EXPECT_GT(awaited.replies, 50);
}

// Operations to a dead target end, for every behaviour of the provider.
TEST(FabricStream, ADeadTargetEndsWaitingOperations) {
    constexpr const char* kLost = "the connection to rank 1 is lost: the network has failed, not the process";
    constexpr const char* kDied = "rank 1 died, or does not answer any more";
    static const std::array<std::uint64_t, 64> kValues{};
    with_dead_peers<Pair>(plain_setup(Protocol::Buffered));
    at_once(with_dead_peers<Pair>(plain_setup(Protocol::Direct)), [](Pair& pair) {
        EXPECT_EQ(pair.put(0, kValues.data(), sizeof kValues), Fault::None);
        EXPECT_EQ(pair.complete_ops(), Fault::None);
        net::SharedCompletion completion = pair.origin.request(1, [&](Transport& t) { t.put(0, kValues.data(), 512); });
        pair.all.fabric().kill(1);
        EXPECT_EQ(pair.put(0, kValues.data(), sizeof kValues), Fault::None);
        EXPECT_EQ(pair.complete_ops(), Fault::Dead);
        // Without lifelines nothing tells whether a process whose connection has failed is dead.
        EXPECT_STREQ(base::fault_text(), pair.all.setup().behaviour.dead == fake::DeadPeer::Errors ? kLost : kDied);
        pair.origin.to(1).await(*completion);
        EXPECT_FALSE(pair.origin.network.messenger.alive(
            *pair.origin.network.connections.connect(pair.all.table().first_address(1))));
    });
}

}  // namespace
}  // namespace osc::test
