// The agent and the transport to it, with ranks as threads: each rank has an agent and an outbox of its own in the
// process's one arena.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "agent_target.h"
#include "local/direct.h"

namespace osc::test {
namespace {

using net::AgentTransport;
using net::Outbox;
using net::Status;

TEST(Agent, MovesBytesOfAnySizeBothWays) {
    AgentTarget target(3 << 20);
    AgentOrigin origin(target);
    for (std::size_t bytes : {1, 8, 1000, 32736, 32768, 100001, 3 << 20}) {
        std::vector<std::uint8_t> out(bytes);
        std::iota(out.begin(), out.end(), static_cast<std::uint8_t>(bytes));
        AgentTransport put = origin.remote();
        put.put(0, out.data(), bytes);
        ASSERT_EQ(put.finish(), Fault::None);
        ASSERT_EQ(std::memcmp(target.memory.data(), out.data(), bytes), 0) << bytes;
        std::vector<std::uint8_t> in(bytes, 0xee);
        AgentTransport get = origin.remote();
        get.get(0, in.data(), bytes);
        ASSERT_EQ(get.finish(), Fault::None);
        ASSERT_EQ(in, out);
    }
}

TEST(Agent, GathersManySmallPieces) {
    constexpr std::size_t kPieces = 5000;
    AgentTarget target(kPieces * 24);
    AgentOrigin origin(target);
    std::vector<std::uint8_t> out(kPieces * 7);
    std::iota(out.begin(), out.end(), std::uint8_t{3});
    std::vector<std::uint8_t> in(out.size());
    AgentTransport put = origin.remote();
    for (std::size_t i = 0; i < kPieces; ++i)
        put.put(static_cast<std::int64_t>(i * 24 + 1), &out[i * 7], 7);
    ASSERT_EQ(put.finish(), Fault::None);
    AgentTransport get = origin.remote();
    for (std::size_t i = 0; i < kPieces; ++i)
        get.get(static_cast<std::int64_t>(i * 24 + 1), &in[i * 7], 7);
    ASSERT_EQ(get.finish(), Fault::None);
    EXPECT_EQ(in, out);
    for (std::size_t i = 0; i < kPieces; ++i)
        EXPECT_EQ(target.at<std::uint8_t>(i * 24), 0);
    EXPECT_LT(target.agent.service().replies(Status::Done), 30u);
}

TEST(Agent, UpdatesReturnThePreviousValues) {
    constexpr std::size_t kElements = 20000;
    AgentTarget target(kElements * 8);
    AgentOrigin origin(target);
    std::vector<std::int64_t> add(kElements), old(kElements);
    std::iota(add.begin(), add.end(), 1);
    for (int round = 0; round < 3; ++round) {
        AgentTransport remote = origin.remote();
        remote.update(update_of(Op::Sum, Basic::I64), 0, add.data(), old.data(), kElements);
        ASSERT_EQ(remote.finish(), Fault::None);
        for (std::size_t i = 0; i < kElements; ++i)
            ASSERT_EQ(old[i], round * add[i]);
    }
    AgentTransport read = origin.remote();
    read.update(update_of(Op::NoOp, Basic::I64), 0, nullptr, old.data(), kElements);
    ASSERT_EQ(read.finish(), Fault::None);
    for (std::size_t i = 0; i < kElements; ++i)
        ASSERT_EQ(old[i], 3 * add[i]);
}

TEST(Agent, UpdatesLeavePaddingAlone) {
    struct Pair {
        double value;
        int index;
    };
    AgentTarget target(sizeof(Pair));
    AgentOrigin origin(target);
    std::memset(target.memory.data(), 0x5a, sizeof(Pair));
    Pair out{4, 5}, back;
    std::memset(static_cast<void*>(&back), 0x77, sizeof back);
    AgentTransport remote = origin.remote();
    remote.update(update_of(Op::Replace, Basic::DoubleInt), 0, &out, &back, 1);
    ASSERT_EQ(remote.finish(), Fault::None);
    EXPECT_EQ(target.at<double>(0), 4);
    EXPECT_EQ(target.at<int>(3), 0x5a5a5a5a);
    int padding = 0;
    std::memcpy(&padding, reinterpret_cast<const char*>(&back) + 12, 4);
    EXPECT_EQ(padding, 0x77777777);
}

TEST(Agent, CompareAndSwap) {
    AgentTarget target(16);
    AgentOrigin origin(target);
    target.at<int>(1) = 7;
    int old = 0;
    const auto swap = [&](int to, int from) {
        AgentTransport remote = origin.remote();
        Update compare = update_of(Op::None, Basic::I32);
        compare.compare = &from;
        remote.update(compare, 4, &to, &old, 1);
        return remote.finish();
    };
    EXPECT_EQ(swap(9, 7), Fault::None);
    EXPECT_EQ(old, 7);
    EXPECT_EQ(swap(1, 7), Fault::None);
    EXPECT_EQ(old, 9);
    EXPECT_EQ(target.at<int>(1), 9);
}

// Ranks that go through the agent and one that updates the memory directly: one lock for all, no update is lost.
TEST(Agent, UpdatesOfAllPathsExcludeEachOther) {
    constexpr int kOrigins = 3;
    constexpr int kEach = 3000;
    AgentTarget target(64);
    std::vector<std::thread> ranks;
    for (int i = 0; i < kOrigins; ++i)
        ranks.emplace_back([&] {
            AgentOrigin origin(target);
            const double one = 1;
            for (int n = 0; n < kEach; ++n) {
                AgentTransport remote = origin.remote();
                remote.update(update_of(Op::Sum, Basic::F64), 8, &one, nullptr, 1);
                ASSERT_EQ(remote.finish(), Fault::None);
            }
        });
    const double one = 1;
    for (int n = 0; n < kEach; ++n) {
        shm::Direct self(target.memory.data(), {target.block(), 1, target.ranks.lives()});
        self.update(update_of(Op::Sum, Basic::F64), 8, &one, nullptr, 1);
        ASSERT_EQ(self.finish(), Fault::None);
    }
    for (std::thread& rank : ranks)
        rank.join();
    EXPECT_EQ(target.at<double>(1), static_cast<double>(kEach) * (kOrigins + 1));
}

// A sleeping agent is woken by each message, without any timed wait to fall back on.
TEST(Agent, SleepsWhenIdleAndMissesNothing) {
    const Deadline deadline(60);
    AgentTarget target(8);
    AgentOrigin origin(target);
    const std::int64_t one = 1;
    for (int i = 0; i < 300; ++i) {
        AgentTransport remote = origin.remote();
        remote.update(update_of(Op::Sum, Basic::I64), 0, &one, nullptr, 1);
        ASSERT_EQ(remote.finish(), Fault::None);
        std::this_thread::sleep_for(std::chrono::microseconds(i % 60));
    }
    EXPECT_EQ(target.at<std::int64_t>(0), 300);
    for (std::uint64_t seen = 0; seen == 0 || target.agent.sleeps() != seen;) {
        seen = target.agent.sleeps();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

TEST(Agent, DynamicWindowsServeAttachedMemoryOnly) {
    AgentTarget target(0);
    std::vector<std::int64_t> memory(100, 5);
    shm::RegionTable regions(target.block());
    ASSERT_EQ(regions.attach(memory.data() + 10, 80 * 8), Fault::None);
    target.window = target.agent.service().add(target.dynamic(regions));
    AgentOrigin origin(target);
    const auto address = [&](std::size_t i) { return reinterpret_cast<std::int64_t>(&memory[i]); };
    const std::int64_t value = 9;
    const auto put = [&](std::size_t i) {
        AgentTransport remote = origin.remote();
        remote.put(address(i), &value, 8);
        return remote.finish();
    };
    EXPECT_EQ(put(10), Fault::None);
    EXPECT_EQ(put(89), Fault::None);
    EXPECT_EQ(put(9), Fault::Range);
    EXPECT_EQ(put(90), Fault::Range);
    ASSERT_EQ(regions.detach(memory.data() + 10), Fault::None);
    EXPECT_EQ(put(10), Fault::Range);
    EXPECT_EQ(std::accumulate(memory.begin(), memory.end(), std::int64_t{0}), 98 * 5 + 2 * 9);
    target.agent.service().remove(target.window);
}

TEST(Agent, FreedWindowIsRefusedAndCounted) {
    AgentTarget target(8);
    AgentOrigin origin(target);
    target.agent.service().remove(target.window);
    const std::int64_t value = -1;
    AgentTransport remote = origin.remote();
    remote.put(0, &value, 8);
    EXPECT_EQ(remote.finish(), Fault::Win);
    EXPECT_EQ(target.at<std::int64_t>(0), 0);
    EXPECT_EQ(target.agent.service().replies(Status::UnknownWindow), 1u);
    EXPECT_NE(target.agent.service().add(target.exposed), target.window);
}

TEST(Agent, EndedAgentIsDeadToItsSenders) {
    AgentTarget target(8);
    AgentOrigin origin(target);
    target.agent.stop();
    const std::int64_t value = 1;
    AgentTransport remote = origin.remote();
    remote.put(0, &value, 8);
    EXPECT_EQ(remote.finish(), Fault::Dead);
    Outbox other;
    net::AgentRoute* none = nullptr;
    EXPECT_EQ(other.connect(own_arena(), target.agent.mailbox(), none), Fault::Dead);
}

TEST(Agent, ChildOfForkEndsWithoutTheAgent) {
    AgentTarget target(8);
    const pid_t child = ::fork();
    if (child == 0) {
        target.agent.stop();  // not its own: nothing happens
        ::_exit(target.agent.start({}) == Fault::Other ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    AgentOrigin origin(target);
    const std::int64_t value = 4;
    AgentTransport remote = origin.remote();
    remote.put(0, &value, 8);
    EXPECT_EQ(remote.finish(), Fault::None);
}

}  // namespace
}  // namespace osc::test
