// The outbox that an origin's messages to agents share: its slots, and the messages that no thread awaits.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "agent_target.h"

namespace osc::test {
namespace {

using net::AgentTransport;
using net::kMessageSlots;
using net::Outbox;
using shm::kEveryTarget;

// What a window keeps of its operations.
struct Account {
    std::atomic<std::uint32_t> incomplete{0};
    net::IncompleteOps ops{incomplete};
};

// More threads than slots share one outbox; each sees its own operations in order. A slot that becomes free wakes a
// thread that sleeps for one, without any timed wait to fall back on.
TEST(AgentOutbox, ThreadsShareAnOutbox) {
    const Deadline deadline(60);
    const Waiting waiting(0, 0, 0);
    constexpr std::size_t kThreads = 12;
    constexpr std::size_t kBytes = 200000;
    AgentTarget target(kThreads * kBytes);
    AgentOrigin origin(target);
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            const auto place = static_cast<std::int64_t>(t * kBytes);
            std::vector<std::uint8_t> out(kBytes), in(kBytes);
            for (int round = 0; round < 10; ++round) {
                std::fill(out.begin(), out.end(), static_cast<std::uint8_t>(t * 10 + static_cast<std::size_t>(round)));
                AgentTransport put = origin.remote();
                put.put(place, out.data(), kBytes);
                ASSERT_EQ(put.finish(), Fault::None);
                AgentTransport get = origin.remote();
                get.get(place, in.data(), kBytes);
                ASSERT_EQ(get.finish(), Fault::None);
                ASSERT_EQ(in, out);
            }
        });
}

// A mailbox whose thread has ended without closing it, as after kill -9.
TEST(AgentOutbox, KilledAgentIsDeadToItsSenders) {
    const shm::ArenaBlock piece = shm::Arena::mine().allocate(sizeof(net::Mailbox), alignof(net::Mailbox), true);
    ASSERT_TRUE(piece);
    auto* box = new (piece.address) net::Mailbox;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    box->process = child;
    box->thread = child;
    box->thread_start_time = 1;
    box->sender_slots[0].state.store(net::SenderState::Accepted);
    Outbox outbox;
    net::AgentRoute* route = nullptr;
    ASSERT_EQ(outbox.connect(own_arena(), piece.offset, route), Fault::None);
    const std::int64_t value = 1;
    AgentTransport remote(outbox, *route, 1, 0, 0);
    remote.put(0, &value, 8);
    EXPECT_EQ(remote.finish(), Fault::Dead);
    Account account;
    AgentTransport unawaited(outbox, *route, 1, 0, 0, &account.ops);
    unawaited.put(0, &value, 8);
    EXPECT_EQ(unawaited.finish(), Fault::None);
    EXPECT_EQ(outbox.complete_ops(account.ops, 0), Fault::Dead);
    // All slots are free again.
    for (std::uint32_t i = 0; i < kMessageSlots; ++i)
        EXPECT_NE(outbox.try_claim(), Outbox::kNone);
}

// An agent whose thread waits in its first introduction until `go`, and which refuses every second one.
struct SlowAgent {
    SlowAgent() {
        EXPECT_EQ(agent.start([this](const shm::ArenaAddress&) {
            while (!go)
                std::this_thread::yield();
            return ++asked % 2 == 0 ? own_arena() : nullptr;
        }),
                  Fault::None);
    }
    std::uint32_t slots() { return box().sender_slots_taken; }
    net::Mailbox& box() { return *reinterpret_cast<net::Mailbox*>(shm::Arena::mine().at(agent.mailbox())); }

    std::atomic<bool> go{false};
    std::uint32_t asked = 0;
    net::Agent agent;
};

// A refused introduction keeps no second slot of the agent, and the next attempt may succeed.
TEST(AgentOutbox, ARefusedSenderTriesAgainByItsSlot) {
    SlowAgent slow;
    slow.go = true;
    Outbox outbox;
    net::AgentRoute* route = nullptr;
    EXPECT_EQ(outbox.connect(own_arena(), slow.agent.mailbox(), route), Fault::NoMem);
    EXPECT_EQ(outbox.connect(own_arena(), slow.agent.mailbox(), route), Fault::None);
    EXPECT_EQ(outbox.connect(own_arena(), slow.agent.mailbox(), route), Fault::None);
    EXPECT_EQ(slow.slots(), 1u);
    EXPECT_EQ(slow.asked, 2u);
}

// While a thread awaits an agent, another one meets a second agent, and a third one that awaits the same agent drives
// the host (I3).
TEST(AgentOutbox, AnIntroductionBlocksNoOtherThread) {
    const Deadline deadline(60);
    static thread_local bool t_counts = false;
    static std::atomic<int> driven{0};
    const Waiting waiting(0, 0, 1);
    shm::set_wait_policy({0, 0, 1, [] { driven += t_counts ? 1 : 0; }});
    SlowAgent slow;
    Outbox outbox;
    const auto meet = [&](net::Agent& agent) {
        net::AgentRoute* route = nullptr;
        return outbox.connect(own_arena(), agent.mailbox(), route);
    };
    std::thread first([&] { EXPECT_EQ(meet(slow.agent), Fault::NoMem); });
    while (slow.slots() == 0)
        std::this_thread::yield();
    AgentTarget other(8);
    EXPECT_EQ(meet(other.agent), Fault::None);
    std::jthread third([&] {
        t_counts = true;
        EXPECT_EQ(meet(slow.agent), Fault::None);
    });
    while (driven < 2)
        std::this_thread::yield();
    slow.go = true;
    first.join();
}

// An agent that has no memory left ends its process, with a line.
TEST(AgentOutbox, AnAgentWithoutMemoryEndsTheProcess) {
    const auto meet = [] {
        net::Agent agent;
        agent.start([](const shm::ArenaAddress&) -> std::shared_ptr<shm::PeerArena> { throw std::bad_alloc(); });
        Outbox outbox;
        net::AgentRoute* route = nullptr;
        outbox.connect(own_arena(), agent.mailbox(), route);
    };
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a child made by fork has no agent
    EXPECT_EXIT(meet(), ::testing::ExitedWithCode(1), "cannot serve other processes any more: std::bad_alloc");
}

// A blocked agent: operations that return nothing come back at once while there are slots, later ones when the agent
// goes on, and complete_ops() waits for all of them.
TEST(AgentOutbox, TracksWhatReturnsNothing) {
    constexpr std::size_t kLater = 20;
    AgentTarget target((kMessageSlots + kLater) * 8);
    AgentOrigin origin(target);
    Account account;
    const auto set = [&](std::size_t i) {
        const auto value = static_cast<std::int64_t>(i + 1);
        AgentTransport remote = origin.remote(&account.ops);
        if (i == 0) {
            remote.update(update_of(Op::Sum, Basic::I64), 0, &value, nullptr, 1);
        } else {
            remote.put(static_cast<std::int64_t>(i * 8), &value, 8);
        }
        EXPECT_EQ(remote.finish(), Fault::None);
    };
    std::atomic<std::uint32_t>& stripe = target.block().stripe_of(0);
    stripe.store(9, std::memory_order_release);
    for (std::size_t i = 0; i < kMessageSlots; ++i)
        set(i);
    EXPECT_EQ(account.incomplete, kMessageSlots);
    std::atomic<bool> done{false};
    std::thread later([&] {
        for (std::size_t i = kMessageSlots; i < kMessageSlots + kLater; ++i)
            set(i);
        EXPECT_EQ(origin.outbox.complete_ops(account.ops, kEveryTarget), Fault::None);
        done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(done);
    stripe.store(0, std::memory_order_release);
    later.join();
    EXPECT_EQ(account.incomplete, 0u);
    for (std::size_t i = 0; i < kMessageSlots + kLater; ++i)
        EXPECT_EQ(target.at<std::int64_t>(i), static_cast<std::int64_t>(i + 1));
    for (std::uint32_t i = 0; i < kMessageSlots; ++i)
        EXPECT_NE(origin.outbox.try_claim(), Outbox::kNone);
}

// The agent executes a message that no thread awaits before later ones.
TEST(AgentOutbox, TrackedUpdatesKeepTheirOrder) {
    AgentTarget target(8);
    AgentOrigin origin(target);
    Account account;
    for (std::int64_t i = 1; i <= 2000; ++i) {
        AgentTransport remote = origin.remote(&account.ops);
        remote.update(update_of(Op::Replace, Basic::I64), 0, &i, nullptr, 1);
        ASSERT_EQ(remote.finish(), Fault::None);
        if (i % 5 != 0) continue;
        std::int64_t seen = 0;
        AgentTransport read = origin.remote(&account.ops);
        read.update(update_of(Op::NoOp, Basic::I64), 0, nullptr, &seen, 1);
        ASSERT_EQ(read.finish(), Fault::None);
        ASSERT_EQ(seen, i);
    }
    EXPECT_EQ(origin.outbox.complete_ops(account.ops, kEveryTarget), Fault::None);
    EXPECT_EQ(account.incomplete, 0u);
}

// A fault is reported to the window that it belongs to, once, whichever call found it.
TEST(AgentOutbox, TrackedFaultsAreReportedOnce) {
    AgentTarget target(64);
    AgentOrigin origin(target);
    Account good, bad;
    const std::int64_t value = 7;
    const auto put = [&](Account& account, std::int64_t disp) {
        AgentTransport remote = origin.remote(&account.ops);
        remote.put(disp, &value, 8);
        return remote.finish();
    };
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(put(bad, 60), Fault::None);
        EXPECT_EQ(put(good, 8), Fault::None);
    }
    EXPECT_EQ(origin.outbox.complete_ops(good.ops, kEveryTarget), Fault::None);
    EXPECT_EQ(origin.outbox.complete_ops(bad.ops, 1), Fault::Range);  // found when slots were short
    EXPECT_NE(std::strstr(base::fault_text(), "does not expose"), nullptr);
    EXPECT_EQ(put(bad, 60), Fault::None);
    EXPECT_EQ(origin.outbox.complete_ops(bad.ops, kEveryTarget), Fault::Range);
    EXPECT_EQ(origin.outbox.complete_ops(bad.ops, kEveryTarget), Fault::None);
    EXPECT_EQ(bad.incomplete, 0u);
    EXPECT_EQ(good.incomplete, 0u);
    EXPECT_EQ(target.at<std::int64_t>(1), 7);
}

// complete_ops() of one window does not wait for another window's operation, which the agent cannot finish yet.
TEST(AgentOutbox, AWindowAwaitsItsOwnMessagesOnly) {
    const Deadline deadline(60);
    AgentTarget target(64);
    AgentOrigin origin(target);
    Account mine, others;
    const std::int64_t value = 7;
    AgentTransport first = origin.remote(&mine.ops);
    first.put(8, &value, 8);
    EXPECT_EQ(first.finish(), Fault::None);
    std::atomic<std::uint32_t>& stripe = target.block().stripe_of(0);
    stripe.store(9, std::memory_order_release);
    AgentTransport second = origin.remote(&others.ops);
    second.update(update_of(Op::Sum, Basic::I64), 0, &value, nullptr, 1);
    EXPECT_EQ(second.finish(), Fault::None);
    EXPECT_EQ(origin.outbox.complete_ops(mine.ops, 1), Fault::None);
    EXPECT_EQ(origin.outbox.complete_ops(mine.ops, kEveryTarget), Fault::None);
    EXPECT_EQ(others.incomplete, 1u);
    stripe.store(0, std::memory_order_release);
    EXPECT_EQ(origin.outbox.complete_ops(others.ops, kEveryTarget), Fault::None);
    EXPECT_EQ(others.incomplete, 0u);
}

// Threads with windows of their own share the slots of one outbox, whose messages none of them awaits at once.
TEST(AgentOutbox, ThreadsShareTheTrackedMessages) {
    constexpr std::size_t kThreads = 12;
    constexpr std::size_t kWords = 100;
    AgentTarget target(kThreads * kWords * 8);
    AgentOrigin origin(target);
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            Account account;
            for (std::int64_t round = 1; round <= 5; ++round) {
                for (std::size_t i = t * kWords; i < (t + 1) * kWords; ++i) {
                    AgentTransport remote = origin.remote(&account.ops);
                    remote.put(static_cast<std::int64_t>(i * 8), &round, 8);
                    ASSERT_EQ(remote.finish(), Fault::None);
                }
                ASSERT_EQ(origin.outbox.complete_ops(account.ops, kEveryTarget), Fault::None);
                ASSERT_EQ(account.incomplete, 0u);
                for (std::size_t i = t * kWords; i < (t + 1) * kWords; ++i)
                    ASSERT_EQ(target.at<std::int64_t>(i), round);
            }
        });
}

}  // namespace
}  // namespace osc::test
