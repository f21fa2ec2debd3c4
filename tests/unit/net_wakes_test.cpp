// What a thread that waits for the network may sleep for wakes it. A sleep is short, so a wake-up that is missing costs
// milliseconds and fails no other test.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "net_processes.h"

namespace osc::test {
namespace {

using namespace std::chrono_literals;

/// A thread in a wait of an engine, which it leaves only with this object.
class Waiter {
  public:
    explicit Waiter(progress::ProgressEngine& engine)
        : engine_(engine),
          thread_([this] { engine_.wait([this] { return looks_.fetch_add(1), ends_.load(); }, kNoneDead); }) {}
    ~Waiter() {
        ends_ = true;
        engine_.ring();
        thread_.join();
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Whether change() wakes the thread, which sleeps before; if it does not sleep yet the answer is true.
    bool wakes_for(const std::function<void()>& change) {
        long looks = -1;
        while (looks != looks_.load()) {
            looks = looks_;
            std::this_thread::sleep_for(20ms);
        }
        change();
        return soon([&] { return looks_.load() != looks; });
    }

  private:
    progress::ProgressEngine& engine_;
    std::atomic<long> looks_{0};
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

TEST(FabricWakes, DeferredMessagesThatLeave) {
    const Deadline deadline(120);
    Processes all(plain_setup(net::Protocol::Messages));
    Process& origin = all[0];
    const std::uint64_t one = 1;
    std::array<std::uint64_t, 20> results{};
    net::SharedCompletion last;
    net::Stream& flow = origin.to(1);
    for (const bool resumes : {false, true}) {
        for (std::uint64_t& result : results)
            last =
                origin.request(1, [&](Transport& t) { t.update(update_of(Op::Sum, Basic::U64), 0, &one, &result, 1); });
        ASSERT_TRUE(flow.is_enlisted());
        {
            const Waiting waiting(0, 0, 0);
            Waiter waiter(origin.network.engine);
            std::unique_lock lock(flow.mutex);
            // Ends the requests in flight while no thread can send the next ones.
            for (std::uint32_t i = 0; i < 400; ++i)
                all[i % 2].network.engine.try_poll();
            EXPECT_TRUE(waiter.wakes_for([&] {
                if (!resumes) return flow.advance();
                lock.unlock();
                static_cast<progress::DeferredWork&>(flow).resume();
            }));
        }
        flow.await(*last);
    }
}

TEST(FabricWakes, ARequestAndAPing) {
    const Deadline deadline(120);
    Processes all(plain_setup(net::Protocol::Messages));
    EXPECT_EQ(all[0].operate(1, [](Transport&) {}), Fault::None);
    net::Connection& to = *all[0].network.connections.connect(all.table().first_address(1));
    const std::uint64_t value = 7;
    const Waiting waiting(0, 0, 0);
    Waiter waiter(all[1].network.engine);
    const auto arrive = [&] {
        for (int i = 0; i < 100; ++i)
            all[1].network.engine.try_poll();
    };
    EXPECT_TRUE(waiter.wakes_for([&] {
        EXPECT_EQ(all[0].operate(1, [&](Transport& t) { t.put(0, &value, sizeof value); }), Fault::None);
        arrive();
    }));
    EXPECT_TRUE(waiter.wakes_for([&] {
        all[0].network.sender.control(to, net::FrameKind::Ping);
        arrive();
    }));
}

// The provider has failed a transfer, and whether the peer is dead is known later.
TEST(FabricWakes, ATransferWithoutPeer) {
    const Deadline deadline(120);
    struct NoMessages final : fabric::Receiver {
        void received(std::byte*, std::size_t) override {}
    } receiver;
    static auto* const all =
        new Processes(plain_setup(net::Protocol::Messages));  // stays: one of its processes is dead
    net::NetworkStack& network = (*all)[0].network;
    net::Connection& to = *network.connections.connect(all->table().first_address(1));
    const std::uint64_t value = 7;
    const auto write = [&](net::Transfer& transfer, std::atomic<bool>& ended) {
        transfer.connection = &to;
        transfer.owner = &ended;
        transfer.ended = [](net::Transfer& which, net::Status) {
            static_cast<std::atomic<bool>*>(which.owner)->store(true);
        };
        const fabric::Exposed& there = (*all)[1].exposed;
        EXPECT_TRUE(network.rdma.write(transfer, &value, sizeof value, there.base, there.key));
    };
    net::Transfer first;
    net::Transfer second;
    std::atomic<bool> first_ended{false};
    std::atomic<bool> second_ended{false};
    write(first, first_ended);  // the first of a few polls
    while (!first_ended)
        all->step();
    const Waiting waiting(0, 0, 0);
    Waiter waiter(network.engine);
    EXPECT_TRUE(waiter.wakes_for([&] {
        all->fabric().kill(1);
        write(second, second_ended);
        const auto lock = network.engine.seize();
        while (!to.failed.load())
            network.endpoint().poll(receiver);
        network.connections.end(to, net::Status::PeerDied);
        network.rdma.settle();
    }));
    EXPECT_TRUE(second_ended);
}

/// A network whose thread sleeps until it is woken.
class Sleepy final : public progress::Driven {
  public:
    int poll() override { return 0; }
    int sleep(int) override {
        std::unique_lock lock(mutex_);
        sleeps = true;
        bell_.wait(lock, [&] { return woken_; });
        woken_ = false;
        sleeps = false;
        return 0;
    }
    void check_peers() override {}
    bool retries_soon() const override { return false; }
    void wake() override {
        const std::lock_guard lock(mutex_);
        woken_ = true;
        ++wakes;
        bell_.notify_all();
    }
    bool has_transfers() const override { return false; }
    bool has_unsent() const override { return false; }

    std::atomic<bool> sleeps{false};
    std::atomic<int> wakes{0};

  private:
    std::mutex mutex_;
    std::condition_variable bell_;
    bool woken_ = false;
};

// The network thread sends later what the provider has no room for.
TEST(FabricWakes, AMessageWithoutRoom) {
    const Deadline deadline(120);
    struct NoFailures final : net::SendFailures {
        void failed(net::Connection&) override {}
        void no_memory(net::Connection&) override {}
    } failures;
    fake::Behaviour behaviour;
    behaviour.queue = 0;
    fake::Fabric fabric(behaviour);
    const auto endpoint = fabric.open();
    Sleepy driven;
    progress::ProgressEngine engine(driven);
    net::Counts counts;
    net::FabricSender sender(engine, failures, counts);
    sender.open(*endpoint, {});
    net::Connection to;
    ASSERT_TRUE(endpoint->insert(endpoint->address(), to.peer));
    std::string why;
    ASSERT_TRUE(engine.start(Progress::Thread, why)) << why;
    ASSERT_TRUE(soon([&] { return driven.sleeps.load(); }));
    sender.control(to, net::FrameKind::Ping);
    EXPECT_TRUE(sender.has_unsent());
    EXPECT_GT(driven.wakes.load(), 0);
    engine.stop();
}

}  // namespace
}  // namespace osc::test
