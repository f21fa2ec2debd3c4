// Threads that read their process's mailbox while they wait: questions, and the messages that they or the agent serve.
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "agent_target.h"
#include "local/direct.h"

namespace osc::test {
namespace {

using net::AgentTransport;
using net::Opcode;
using net::Outbox;
using net::Record;
using net::Status;

// A thread that waits until the end of the scope.
class WaitingThread {
  public:
    explicit WaitingThread(net::Agent& agent)
        : thread_([this, &agent] {
              while (!over_)
                  agent.poll();
              agent.leave();
          }) {}
    ~WaitingThread() {
        over_ = true;
        thread_.join();
    }

  private:
    std::atomic<bool> over_{false};
    std::thread thread_;
};

constexpr Record kPut{.opcode = Opcode::Put, .bytes = 8, .disp = 8};
constexpr Record kAdd{.opcode = Opcode::Update, .basic = Basic::U64, .op = Op::Sum, .bytes = 8};
constexpr Record kSwap{.opcode = Opcode::CompareAndSwap, .basic = Basic::U64, .bytes = 8};

struct Asker : AgentOrigin {
    using AgentOrigin::AgentOrigin;
    std::optional<Status> ask(const Record& record, const void* data, const void* compare = nullptr,
                              void* result = nullptr) {
        return Outbox::ask(*route, target.window, record, data, compare, result);
    }
    // Until a thread of the target waits.
    Status insist(const Record& record, const void* data, const void* compare = nullptr, void* result = nullptr) {
        for (;; std::this_thread::yield())
            if (const auto status = ask(record, data, compare, result)) return *status;
    }
    void insist_until_watched() {
        const std::uint64_t five = 5;
        while (!watched())
            EXPECT_EQ(insist(kPut, &five), Status::Done);
    }
    bool watched() const { return route->question->watched.load() != 0; }
    bool attended() const { return net::is_attended(route->box->attended.load()); }
};

// Outlives the target's threads: an outbox of a process is never destroyed.
using Origins = std::vector<std::unique_ptr<Asker>>;

TEST(Attended, AThreadThatWaitsAnswersQuestions) {
    AgentTarget target(4096);
    Asker origin(target);
    const WaitingThread waits(target.agent);
    const std::uint64_t five = 5, six = 6;
    std::uint64_t seen = 0;
    EXPECT_EQ(origin.insist(kPut, &five), Status::Done);
    EXPECT_EQ(target.at<std::uint64_t>(1), 5u);
    EXPECT_EQ(origin.insist({.opcode = Opcode::Get, .bytes = 8, .disp = 8}, nullptr, nullptr, &seen), Status::Done);
    EXPECT_EQ(seen, 5u);
    EXPECT_EQ(origin.insist(kAdd, &six), Status::Done);
    EXPECT_EQ(origin.insist({.opcode = Opcode::UpdateReturn, .basic = Basic::U64, .op = Op::Sum, .bytes = 8}, &five,
                            nullptr, &seen),
              Status::Done);
    EXPECT_EQ(seen, 6u);
    const std::uint64_t eleven = 11;
    EXPECT_EQ(origin.insist(kSwap, &six, &eleven, &seen), Status::Done);
    EXPECT_EQ(seen, 11u);
    EXPECT_EQ(target.at<std::uint64_t>(0), 6u);
    std::vector<std::uint8_t> most(net::kQuickBody - sizeof(Record), 7);
    EXPECT_EQ(origin.insist({.opcode = Opcode::Put, .bytes = static_cast<std::uint32_t>(most.size()), .disp = 16},
                            most.data()),
              Status::Done);
    EXPECT_EQ(target.at<std::uint8_t>(16 + most.size() - 1), 7);
    EXPECT_EQ(target.at<std::uint8_t>(16 + most.size()), 0);
    EXPECT_EQ(origin.insist({.opcode = Opcode::Put, .bytes = 8, .disp = 4096}, &five), Status::OutOfRange);
}

TEST(Attended, NoQuestionIsAskedWhereNoThreadWaits) {
    AgentTarget target(64);
    Asker origin(target);
    const std::uint64_t five = 5;
    EXPECT_EQ(origin.ask(kPut, &five), std::nullopt);
    for (int i = 0; i < 4; ++i)  // a program that polls the host now and then
        target.agent.poll();
    EXPECT_FALSE(origin.attended());
    for (int i = 0; i < 100; ++i)
        target.agent.poll();
    EXPECT_TRUE(origin.attended());
    target.agent.leave();
    EXPECT_FALSE(origin.attended());
    EXPECT_EQ(target.at<std::uint64_t>(1), 0u);
}

// A thread that waits may look less often once no message has come for long, until one comes or the mailbox is
// unattended.
TEST(Attended, QuietWaitsMayLookNowAndThen) {
    AgentTarget target(64);
    Asker origin(target);
    const auto quiet_after = [&](int polls) {
        bool quiet = false;
        while (polls-- > 0)
            quiet = target.agent.poll();
        return quiet;
    };
    EXPECT_FALSE(quiet_after(100));
    EXPECT_TRUE(quiet_after(2000));
    AgentTransport message = origin.remote();
    const std::uint64_t five = 5;
    message.put(16, &five, sizeof five);
    std::jthread sender([&] { EXPECT_EQ(message.finish(), Fault::None); });
    while (target.agent.poll()) {
    }
    sender.join();
    EXPECT_TRUE(quiet_after(2000));
    target.agent.leave();
    EXPECT_FALSE(quiet_after(1));
}

// The wait ends unseen: one sender's patience tells all of them, and the slot is free when its link is out of the
// mailbox.
TEST(Attended, AQuestionThatNoThreadAnswersIsTakenBack) {
    AgentTarget target(64);
    Asker origin(target), other(target);
    const auto attend = [&] {
        while (!origin.attended())
            target.agent.poll();
    };
    attend();
    const std::uint64_t five = 5;
    EXPECT_EQ(origin.ask(kPut, &five), std::nullopt);
    EXPECT_FALSE(origin.attended());
    EXPECT_EQ(other.ask(kPut, &five), std::nullopt);
    AgentTransport message = other.remote();  // wakes the agent, which takes the link out
    message.put(16, &five, sizeof five);
    EXPECT_EQ(message.finish(), Fault::None);
    while (origin.route->question->state != net::MessageState::Idle)
        std::this_thread::yield();
    EXPECT_EQ(target.at<std::uint64_t>(1), 0u);
    EXPECT_EQ(target.at<std::uint64_t>(2), 5u);
    const WaitingThread waits(target.agent);
    EXPECT_EQ(origin.insist(kPut, &five), Status::Done);
    EXPECT_EQ(target.at<std::uint64_t>(1), 5u);
}

// A sender whose slot is watched pushes no link, so it may ask again as soon as it has taken a question back.
TEST(Attended, AQuestionInAWatchedSlotHasNoLink) {
    const Deadline deadline(100);
    Origins origins;
    AgentTarget target(64);
    Asker& origin = *origins.emplace_back(std::make_unique<Asker>(target));
    const std::uint64_t six = 6;
    for (int round = 1; round <= 5; ++round) {
        {
            const WaitingThread waits(target.agent);
            for (int i = 0; i < 20; ++i)
                ASSERT_EQ(origin.insist(kAdd, &six), Status::Done);
            origin.insist_until_watched();
        }
        while (!origin.attended())
            target.agent.poll();
        ASSERT_TRUE(origin.watched());
        ASSERT_EQ(origin.ask(kAdd, &six), std::nullopt);
        EXPECT_EQ(origin.route->question->state, net::MessageState::Idle);
        EXPECT_EQ(origin.route->box->head, 0u);
        EXPECT_FALSE(origin.watched());
        EXPECT_EQ(target.at<std::uint64_t>(0), 120u * static_cast<unsigned>(round));
    }
}

TEST(Attended, MoreSendersThanAreWatchedAreServed) {
    const Deadline deadline(100);
    Origins origins;
    AgentTarget target(64);
    for (int i = 0; i < 7; ++i)
        origins.emplace_back(std::make_unique<Asker>(target));
    const WaitingThread waits(target.agent);
    const std::uint64_t one = 1;
    for (int round = 1; round <= 5; ++round) {
        for (const auto& origin : origins) {
            origin->insist_until_watched();
            ASSERT_EQ(origin->insist(kAdd, &one), Status::Done);
        }
        const auto watched = std::ranges::count_if(origins, [](const auto& origin) { return origin->watched(); });
        EXPECT_LE(watched, 4);
        EXPECT_EQ(target.at<std::uint64_t>(0), static_cast<std::uint64_t>(7 * round));
    }
}

TEST(Attended, TheAgentServesMessagesAndIntroductionsThatNoThreadReads) {
    const Deadline deadline(30);
    Origins late;
    AgentTarget target(1 << 20);
    AgentOrigin origin(target);
    std::vector<std::uint8_t> out(1 << 20, 9);
    for (int round = 0; round < 20; ++round) {
        while (!net::is_attended(origin.route->box->attended.load()))
            target.agent.poll();
        AgentTransport put = origin.remote();
        put.put(0, out.data(), out.size());
        ASSERT_EQ(put.finish(), Fault::None);
        while (!net::is_attended(origin.route->box->attended.load()))
            target.agent.poll();
        late.push_back(std::make_unique<Asker>(target));
    }
    EXPECT_EQ(target.at<std::uint8_t>(out.size() - 1), 9);
}

// A waiting thread leaves introductions, and what comes behind them, to the agent.
TEST(Attended, AProcessIsIntroducedWhileAThreadWaits) {
    const Deadline deadline(30);
    Origins origins;
    AgentTarget target(64);
    const WaitingThread waits(target.agent);
    for (int round = 0; round < 50; ++round) {
        AgentTransport put = origins.emplace_back(std::make_unique<Asker>(target))->remote();
        put.put(0, &round, sizeof round);
        ASSERT_EQ(put.finish(), Fault::None);
        EXPECT_EQ(target.at<int>(0), round);
    }
}

// Threads that wait, leave seen or unseen, ask, send, and update the memory themselves where nothing answers.
TEST(Attended, EachOperationHappensOnce) {
    const Deadline deadline(100);
    constexpr int kOrigins = 4;
    constexpr std::uint64_t kEach = 20000;
    Origins origins;
    AgentTarget target(64);
    std::atomic<int> left{kOrigins};
    std::vector<std::thread> threads;
    for (unsigned waiter = 0; waiter < 2; ++waiter)
        threads.emplace_back([&, waiter] {
            std::minstd_rand random(waiter);
            while (left != 0) {
                for (auto polls = random() % 3000; polls > 0 && left != 0; --polls)
                    target.agent.poll();
                if (random() % 2 == 0) target.agent.leave();
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
            }
        });
    std::atomic<std::uint64_t> answered{0}, total{0};
    for (int number = 0; number < kOrigins; ++number)
        threads.emplace_back([&, &origin = *origins.emplace_back(std::make_unique<Asker>(target))] {
            const std::uint64_t one = 1;
            const Update add{Basic::U64, Op::Sum, op::kernel(Op::Sum, Basic::U64), nullptr, 8};
            std::uint64_t i = 0;
            for (; i < kEach || answered == 0; ++i) {  // on a busy machine it takes a while
                if (i % 16 == 0) {
                    AgentTransport message = origin.remote();
                    message.update(add, 0, &one, nullptr, 1);
                    ASSERT_EQ(message.finish(), Fault::None);
                } else if (const auto status = origin.ask(kAdd, &one)) {
                    ASSERT_EQ(*status, Status::Done);
                    ++answered;
                } else {
                    shm::Direct memory(target.memory.data(), {target.block(), 0, target.ranks.lives()});
                    memory.update(add, 0, &one, nullptr, 1);
                    ASSERT_EQ(memory.finish(), Fault::None);
                }
            }
            total += i;
            --left;
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(target.at<std::uint64_t>(0), total);
}

}  // namespace
}  // namespace osc::test
