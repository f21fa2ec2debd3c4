// The agent and the transport to it, with ranks as threads: each rank has an agent and an outbox of its
// own in the process's one arena.
#include "agent/agent.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "transport/agent/remote.h"
#include "transport/direct/direct.h"

namespace osc::agent {
namespace {

struct AllAlive final : sync::Liveness {
    bool alive(std::uint32_t) override { return true; }
};

std::shared_ptr<shm::PeerArena> own_arena() {
    return std::make_shared<shm::PeerArena>(shm::Arena::mine().address());
}

Update how(Op op, Basic basic) {
    return {basic, op, op::kernel(op, basic), op::kernel(Op::Replace, basic), op::element_size(basic)};
}

// A target: memory, control block, agent.
struct Target {
    explicit Target(std::size_t bytes) : memory(bytes) {
        EXPECT_EQ(agent.start({}), Fault::None);
        served = {memory.data(), bytes, nullptr, block.get(), 0, &alive};
        window = agent.windows().add(served);
    }
    template <class T>
    T& at(std::size_t i) {
        return reinterpret_cast<T*>(memory.data())[i];
    }

    AllAlive alive;
    std::vector<std::byte> memory;
    std::unique_ptr<shm::ControlBlock> block = std::make_unique<shm::ControlBlock>();
    Served served;
    Agent agent;
    std::uint64_t window = 0;
};

// An origin connected to a target.
struct Origin {
    explicit Origin(Target& to) : target(to) {
        EXPECT_EQ(outbox.connect(own_arena(), to.agent.mailbox(), connection), Fault::None);
    }
    Remote remote(Pending* pending = nullptr) { return {outbox, *connection, target.window, 0, 0, pending}; }

    Target& target;
    Outbox outbox;
    Connection* connection = nullptr;
};

// What a window keeps of its operations.
struct Account {
    std::atomic<std::uint32_t> unsettled{0};
    Pending pending{unsettled, Fault::None, {}};
};

TEST(Agent, MovesBytesOfAnySizeBothWays) {
    Target target(3 << 20);
    Origin origin(target);
    for (std::size_t bytes : {1, 8, 1000, 32736, 32768, 100001, 3 << 20}) {
        std::vector<std::uint8_t> out(bytes);
        std::iota(out.begin(), out.end(), static_cast<std::uint8_t>(bytes));
        Remote put = origin.remote();
        put.put(0, out.data(), bytes);
        ASSERT_EQ(put.finish(), Fault::None);
        ASSERT_EQ(std::memcmp(target.memory.data(), out.data(), bytes), 0) << bytes;
        std::vector<std::uint8_t> in(bytes, 0xee);
        Remote get = origin.remote();
        get.get(0, in.data(), bytes);
        ASSERT_EQ(get.finish(), Fault::None);
        ASSERT_EQ(in, out);
    }
}

TEST(Agent, GathersManySmallPieces) {
    constexpr std::size_t kPieces = 5000;
    Target target(kPieces * 24);
    Origin origin(target);
    std::vector<std::uint8_t> out(kPieces * 7);
    std::iota(out.begin(), out.end(), std::uint8_t{3});
    std::vector<std::uint8_t> in(out.size());
    Remote put = origin.remote();
    for (std::size_t i = 0; i < kPieces; ++i)
        put.put(static_cast<std::int64_t>(i * 24 + 1), &out[i * 7], 7);
    ASSERT_EQ(put.finish(), Fault::None);
    Remote get = origin.remote();
    for (std::size_t i = 0; i < kPieces; ++i)
        get.get(static_cast<std::int64_t>(i * 24 + 1), &in[i * 7], 7);
    ASSERT_EQ(get.finish(), Fault::None);
    EXPECT_EQ(in, out);
    for (std::size_t i = 0; i < kPieces; ++i)
        EXPECT_EQ(target.at<std::uint8_t>(i * 24), 0);
    EXPECT_LT(target.agent.windows().answered(Status::Done), 30u);
}

TEST(Agent, UpdatesReturnWhatWasThere) {
    constexpr std::size_t kElements = 20000;
    Target target(kElements * 8);
    Origin origin(target);
    std::vector<std::int64_t> add(kElements), old(kElements);
    std::iota(add.begin(), add.end(), 1);
    for (int round = 0; round < 3; ++round) {
        Remote remote = origin.remote();
        remote.update(how(Op::Sum, Basic::I64), 0, add.data(), old.data(), kElements);
        ASSERT_EQ(remote.finish(), Fault::None);
        for (std::size_t i = 0; i < kElements; ++i)
            ASSERT_EQ(old[i], round * add[i]);
    }
    Remote read = origin.remote();
    read.update(how(Op::NoOp, Basic::I64), 0, nullptr, old.data(), kElements);
    ASSERT_EQ(read.finish(), Fault::None);
    for (std::size_t i = 0; i < kElements; ++i)
        ASSERT_EQ(old[i], 3 * add[i]);
}

TEST(Agent, UpdatesLeavePaddingAlone) {
    struct Pair {
        double value;
        int index;
    };
    Target target(sizeof(Pair));
    Origin origin(target);
    std::memset(target.memory.data(), 0x5a, sizeof(Pair));
    Pair out{4, 5}, back;
    std::memset(static_cast<void*>(&back), 0x77, sizeof back);
    Remote remote = origin.remote();
    remote.update(how(Op::Replace, Basic::DoubleInt), 0, &out, &back, 1);
    ASSERT_EQ(remote.finish(), Fault::None);
    EXPECT_EQ(target.at<double>(0), 4);
    EXPECT_EQ(target.at<int>(3), 0x5a5a5a5a);
    int padding = 0;
    std::memcpy(&padding, reinterpret_cast<const char*>(&back) + 12, 4);
    EXPECT_EQ(padding, 0x77777777);
}

TEST(Agent, CompareAndSwap) {
    Target target(16);
    Origin origin(target);
    target.at<int>(1) = 7;
    int old = 0;
    const auto swap = [&](int to, int from) {
        Remote remote = origin.remote();
        remote.compare_and_swap(how(Op::Replace, Basic::I32), 4, &to, &from, &old);
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
    Target target(64);
    std::vector<std::thread> ranks;
    for (int i = 0; i < kOrigins; ++i)
        ranks.emplace_back([&] {
            Origin origin(target);
            const double one = 1;
            for (int n = 0; n < kEach; ++n) {
                Remote remote = origin.remote();
                remote.update(how(Op::Sum, Basic::F64), 8, &one, nullptr, 1);
                ASSERT_EQ(remote.finish(), Fault::None);
            }
        });
    const double one = 1;
    for (int n = 0; n < kEach; ++n) {
        shm::Direct self(target.memory.data(), {*target.block, 1, target.alive});
        self.update(how(Op::Sum, Basic::F64), 8, &one, nullptr, 1);
        ASSERT_EQ(self.finish(), Fault::None);
    }
    for (std::thread& rank : ranks)
        rank.join();
    EXPECT_EQ(target.at<double>(1), static_cast<double>(kEach) * (kOrigins + 1));
}

// More threads than slots share one outbox; each sees its own operations in order.
TEST(Agent, ThreadsShareAnOutbox) {
    constexpr std::size_t kThreads = 12;
    constexpr std::size_t kBytes = 200000;
    Target target(kThreads * kBytes);
    Origin origin(target);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            const auto place = static_cast<std::int64_t>(t * kBytes);
            std::vector<std::uint8_t> out(kBytes), in(kBytes);
            for (int round = 0; round < 10; ++round) {
                std::fill(out.begin(), out.end(), static_cast<std::uint8_t>(t * 10 + static_cast<std::size_t>(round)));
                Remote put = origin.remote();
                put.put(place, out.data(), kBytes);
                ASSERT_EQ(put.finish(), Fault::None);
                Remote get = origin.remote();
                get.get(place, in.data(), kBytes);
                ASSERT_EQ(get.finish(), Fault::None);
                ASSERT_EQ(in, out);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
}

// A sleeping agent is woken by each message, without any timed wait to fall back on.
TEST(Agent, SleepsWhenIdleAndMissesNothing) {
    Target target(8);
    Origin origin(target);
    const std::int64_t one = 1;
    for (int i = 0; i < 300; ++i) {
        Remote remote = origin.remote();
        remote.update(how(Op::Sum, Basic::I64), 0, &one, nullptr, 1);
        ASSERT_EQ(remote.finish(), Fault::None);
        std::this_thread::sleep_for(std::chrono::microseconds(i % 60));
    }
    EXPECT_EQ(target.at<std::int64_t>(0), 300);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::uint64_t asleep = target.agent.sleeps();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(target.agent.sleeps(), asleep);
    EXPECT_GT(asleep, 0u);
}

TEST(Agent, DynamicWindowsServeAttachedMemoryOnly) {
    Target target(0);
    std::vector<std::int64_t> memory(100, 5);
    shm::RegionTable regions(*target.block);
    ASSERT_EQ(regions.attach(memory.data() + 10, 80 * 8), Fault::None);
    target.window = target.agent.windows().add({nullptr, 0, &regions, target.block.get(), 0, &target.alive});
    Origin origin(target);
    const auto address = [&](std::size_t i) { return reinterpret_cast<std::int64_t>(&memory[i]); };
    const std::int64_t value = 9;
    const auto put = [&](std::size_t i) {
        Remote remote = origin.remote();
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
    target.agent.windows().remove(target.window);
}

TEST(Agent, FreedWindowIsRefusedAndCounted) {
    Target target(8);
    Origin origin(target);
    target.agent.windows().remove(target.window);
    const std::int64_t value = -1;
    Remote remote = origin.remote();
    remote.put(0, &value, 8);
    EXPECT_EQ(remote.finish(), Fault::Win);
    EXPECT_EQ(target.at<std::int64_t>(0), 0);
    EXPECT_EQ(target.agent.windows().answered(Status::UnknownWindow), 1u);
    EXPECT_NE(target.agent.windows().add(target.served), target.window);
}

TEST(Agent, EndedAgentIsDeadToItsSenders) {
    Target target(8);
    Origin origin(target);
    target.agent.stop();
    const std::int64_t value = 1;
    Remote remote = origin.remote();
    remote.put(0, &value, 8);
    EXPECT_EQ(remote.finish(), Fault::Dead);
    Outbox other;
    Connection* none = nullptr;
    EXPECT_EQ(other.connect(own_arena(), target.agent.mailbox(), none), Fault::Dead);
}

// A mailbox whose thread is gone without a word, as after kill -9.
TEST(Agent, KilledAgentIsDeadToItsSenders) {
    const shm::Piece piece = shm::Arena::mine().allocate(sizeof(Mailbox), alignof(Mailbox), true);
    ASSERT_TRUE(piece);
    auto* box = new (piece.address) Mailbox;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    box->process = child;
    box->thread = child;
    box->thread_start_time = 1;
    box->cards[0].state.store(CardState::Accepted);
    Outbox outbox;
    Connection* connection = nullptr;
    ASSERT_EQ(outbox.connect(own_arena(), piece.offset, connection), Fault::None);
    const std::int64_t value = 1;
    Remote remote(outbox, *connection, 1, 0, 0);
    remote.put(0, &value, 8);
    EXPECT_EQ(remote.finish(), Fault::Dead);
    Account account;
    Remote left(outbox, *connection, 1, 0, 0, &account.pending);
    left.put(0, &value, 8);
    EXPECT_EQ(left.finish(), Fault::None);
    EXPECT_EQ(outbox.settle(account.pending, 0), Fault::Dead);
    // All slots are free again.
    for (std::uint32_t i = 0; i < kSlots; ++i)
        EXPECT_NE(outbox.try_claim(), Outbox::kNone);
}

// An agent that is held up: operations that return nothing come back at once while there are slots, later ones when
// the agent goes on, and settling waits for all of them.
TEST(Agent, LeavesWhatReturnsNothing) {
    constexpr std::size_t kLater = 20;
    Target target((kSlots + kLater) * 8);
    Origin origin(target);
    Account account;
    const auto set = [&](std::size_t i) {
        const auto value = static_cast<std::int64_t>(i + 1);
        Remote remote = origin.remote(&account.pending);
        if (i == 0) {
            remote.update(how(Op::Sum, Basic::I64), 0, &value, nullptr, 1);
        } else {
            remote.put(static_cast<std::int64_t>(i * 8), &value, 8);
        }
        EXPECT_EQ(remote.finish(), Fault::None);
    };
    std::atomic<std::uint32_t>& stripe = target.block->stripe_of(0);
    stripe.store(9, std::memory_order_release);
    for (std::size_t i = 0; i < kSlots; ++i)
        set(i);
    EXPECT_EQ(account.unsettled, kSlots);
    std::atomic<bool> done{false};
    std::thread later([&] {
        for (std::size_t i = kSlots; i < kSlots + kLater; ++i)
            set(i);
        EXPECT_EQ(origin.outbox.settle(account.pending, kEveryRank), Fault::None);
        done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(done);
    stripe.store(0, std::memory_order_release);
    later.join();
    EXPECT_EQ(account.unsettled, 0u);
    for (std::size_t i = 0; i < kSlots + kLater; ++i)
        EXPECT_EQ(target.at<std::int64_t>(i), static_cast<std::int64_t>(i + 1));
    for (std::uint32_t i = 0; i < kSlots; ++i)
        EXPECT_NE(origin.outbox.try_claim(), Outbox::kNone);
}

// What is left is executed before what comes later.
TEST(Agent, LeftUpdatesKeepTheirOrder) {
    Target target(8);
    Origin origin(target);
    Account account;
    for (std::int64_t i = 1; i <= 2000; ++i) {
        Remote remote = origin.remote(&account.pending);
        remote.update(how(Op::Replace, Basic::I64), 0, &i, nullptr, 1);
        ASSERT_EQ(remote.finish(), Fault::None);
        if (i % 5 != 0) continue;
        std::int64_t seen = 0;
        Remote read = origin.remote(&account.pending);
        read.update(how(Op::NoOp, Basic::I64), 0, nullptr, &seen, 1);
        ASSERT_EQ(read.finish(), Fault::None);
        ASSERT_EQ(seen, i);
    }
    EXPECT_EQ(origin.outbox.settle(account.pending, kEveryRank), Fault::None);
    EXPECT_EQ(account.unsettled, 0u);
}

// A fault is told to the window that it belongs to, once, whoever found it.
TEST(Agent, LeftFaultsAreToldOnce) {
    Target target(64);
    Origin origin(target);
    Account good, bad;
    const std::int64_t value = 7;
    const auto put = [&](Account& account, std::int64_t disp) {
        Remote remote = origin.remote(&account.pending);
        remote.put(disp, &value, 8);
        return remote.finish();
    };
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(put(bad, 60), Fault::None);
        EXPECT_EQ(put(good, 8), Fault::None);
    }
    EXPECT_EQ(origin.outbox.settle(good.pending, kEveryRank), Fault::None);
    EXPECT_EQ(origin.outbox.settle(bad.pending, 1), Fault::Range);  // found when slots were short
    EXPECT_NE(std::strstr(diag::fault_text(), "does not expose"), nullptr);
    EXPECT_EQ(put(bad, 60), Fault::None);
    EXPECT_EQ(origin.outbox.settle(bad.pending, kEveryRank), Fault::Range);
    EXPECT_EQ(origin.outbox.settle(bad.pending, kEveryRank), Fault::None);
    EXPECT_EQ(bad.unsettled, 0u);
    EXPECT_EQ(good.unsettled, 0u);
    EXPECT_EQ(target.at<std::int64_t>(1), 7);
}

// Threads with windows of their own leave messages in one outbox, wait for slots that others have left, and settle.
TEST(Agent, ThreadsLeaveMessagesInOneOutbox) {
    constexpr std::size_t kThreads = 12;
    constexpr std::size_t kWords = 100;
    Target target(kThreads * kWords * 8);
    Origin origin(target);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            Account account;
            for (std::int64_t round = 1; round <= 5; ++round) {
                for (std::size_t i = t * kWords; i < (t + 1) * kWords; ++i) {
                    Remote remote = origin.remote(&account.pending);
                    remote.put(static_cast<std::int64_t>(i * 8), &round, 8);
                    ASSERT_EQ(remote.finish(), Fault::None);
                }
                ASSERT_EQ(origin.outbox.settle(account.pending, kEveryRank), Fault::None);
                ASSERT_EQ(account.unsettled, 0u);
                for (std::size_t i = t * kWords; i < (t + 1) * kWords; ++i)
                    ASSERT_EQ(target.at<std::int64_t>(i), round);
            }
        });
    for (std::thread& thread : threads)
        thread.join();
}

TEST(Agent, ChildOfForkEndsWithoutTheAgent) {
    Target target(8);
    const pid_t child = ::fork();
    if (child == 0) {
        target.agent.stop();  // not its own: nothing happens
        ::_exit(target.agent.start({}) == Fault::Other ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    Origin origin(target);
    const std::int64_t value = 4;
    Remote remote = origin.remote();
    remote.put(0, &value, 8);
    EXPECT_EQ(remote.finish(), Fault::None);
}

}  // namespace
}  // namespace osc::agent
