// Two network stacks in one process, over libfabric on the loopback interface: requests and replies, and messages of
// strangers.
#include <rdma/fabric.h>

#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "net/network_stack.h"
#include "net_target.h"
#include "real_provider.h"
#include "table_of.h"

namespace osc::test {
namespace {

using When = net::FabricSender::When;

class Replies final : public net::ReplyHandler {
  public:
    void answered(net::Status status, const std::byte* data, std::size_t bytes) override {
        if (status != net::Status::Done || bytes != 8) {
            wrong.fetch_add(1);
        } else {
            std::uint64_t value = 0;
            std::memcpy(&value, data, sizeof value);
            sum.fetch_add(value);
        }
        came.fetch_add(1);
    }
    std::atomic<std::uint64_t> came{0};
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> sum{0};
};

class TwoNetworks : public ::testing::Test {
  protected:
    const fabric::Wishes wishes_{real_provider(), "", true, false};

    void SetUp() override {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer does not see how libfabric orders its accesses";
#endif
        std::string why;
        if (!target_.open(wishes_, 10000, {1, 2}, why) || !origin_.open(wishes_, 10000, {3, 4}, why))
            GTEST_SKIP() << why;
        to_target_ = origin_.connections.connect(target_.address());
        ASSERT_NE(to_target_, nullptr);
        // As in a team: the origin connects to the target, and the target has the origin in its table.
        static_cast<net::ProcessTable&>(job_) =
            table_of(std::array{target_.address(), origin_.address()}, table_memory_);
        target_.connections.admit(job_);
        tokens_ = {target_.address().token, origin_.address().token};
        net::ExposedWindow window;
        window.id = kWindow;
        window.base = reinterpret_cast<std::byte*>(words_.data());
        window.size = words_.size() * sizeof words_[0];
        window.controls = &ranks_.controls();
        window.processes = 2;
        window.liveness = &ranks_.lives();
        window.tokens.own = tokens_;
        target_.messenger.serve(window);
    }
    void TearDown() override {
        if (target_.is_open()) target_.messenger.end_service(kWindow);
        origin_.close();
        target_.close();
    }
    /// Requests the addition of one to the second word, and its old value.
    void ask(Replies& replies, net::FrameKind kind = net::FrameKind::Request, When when = When::Now) {
        const Body body = Body().sum(net::Opcode::UpdateReturn, 8, 1);
        net::Message* message = origin_.sender.claim();
        std::memcpy(message->body(), body.bytes.data(), body.bytes.size());
        message->bytes = body.bytes.size();
        origin_.messenger.request(*to_target_, kind, kWindow, 1, message, replies, when);
    }
    /// Fetches and adds one, `count` times, with many requests in flight.
    void count_up(std::uint64_t count, net::FrameKind kind = net::FrameKind::Request) {
        Replies replies;
        const std::uint64_t before = words_[1];
        for (std::uint64_t i = 0; i < count; ++i) {
            ask(replies, kind);
            const auto few_open = [&] { return replies.came.load() + 64 > i; };
            ASSERT_TRUE(origin_.engine.wait(few_open, kNoneDead));
        }
        ASSERT_TRUE(origin_.engine.wait([&] { return replies.came.load() == count; }, kNoneDead));
        EXPECT_EQ(replies.wrong.load(), 0u);
        // Each has seen another value, without a gap.
        EXPECT_EQ(replies.sum.load(), count * before + count * (count - 1) / 2);
        EXPECT_EQ(words_[1], before + count);
    }

    Deadline deadline_{120};
    Ranks ranks_{2, 1};
    std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(8);
    std::array<std::uint64_t, 2> tokens_{};
    std::vector<std::uint64_t> table_memory_;
    net::Job job_;
    net::NetworkStack target_;
    net::NetworkStack origin_;
    net::Connection* to_target_ = nullptr;
};

// Providers whose threads sleep in libfabric, and on descriptors.
TEST(Endpoint, AWakeEndsASleep) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer does not see how libfabric orders its accesses";
#endif
    const Deadline deadline(120);
    int opened = 0;
    for (const char* provider : {"net", "tcp", "tcp;ofi_rxm"}) {
        std::string why;
        const std::unique_ptr<fabric::Endpoint> endpoint(fabric::open({provider, "", true, false}, why));
        if (endpoint == nullptr) continue;
        ++opened;
        const auto begin = std::chrono::steady_clock::now();
        std::thread sleeper([&] {
            Deaf deaf;
            endpoint->sleep(20000, deaf);
        });
        endpoint->wake();
        sleeper.join();
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << provider;
    }
    if (opened == 0) GTEST_SKIP() << "no provider";
}

// Writes with a key that was never one, or with that of a registration that has ended.
void write_wrongly(bool had_the_key) {
    const Deadline deadline(120);
    std::string why;
    const fabric::Wishes wishes{real_provider(), "", true, false};
    const std::unique_ptr<fabric::Endpoint> origin(fabric::open(wishes, why));
    const std::unique_ptr<fabric::Endpoint> target(fabric::open(wishes, why));
    if (origin == nullptr || target == nullptr) GTEST_SKIP() << why;
    std::uint64_t from = 1, to = 0;
    fabric::PeerId peer = 0;
    fabric::Exposed exposed;
    ASSERT_TRUE(origin->insert(target->address(), peer) && target->expose(&to, sizeof to, exposed));
    std::atomic<bool> ended{false};
    std::atomic<int> polls{0};
    std::thread poller([&] {
        Deaf deaf;
        for (; !ended; ++polls)
            target->poll(deaf);
    });
    const auto write = [&, base = exposed.base](std::uint64_t key) {
        return perform(*origin, [&](fabric::Operation& operation) {
            return origin->write(peer, &from, sizeof from, base, key, operation);
        });
    };
    const std::uint64_t key = exposed.key;
    if (had_the_key) {
        EXPECT_EQ(write(key), 0);
        EXPECT_EQ(std::exchange(to, 0u), 1u);
        target->revoke(exposed);
        for (const int before = polls; polls < before + 2;)  // which close the registration
            std::this_thread::yield();
    }
    const int error = write(had_the_key ? key : ~key);
    ended = true;
    poller.join();
    EXPECT_GT(error, 0);
    EXPECT_EQ(to, 0u);
    target->revoke(exposed);
}

TEST(Endpoint, AWrongAccessEndsWithAnError) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer does not see how libfabric orders its accesses";
#endif
    write_wrongly(false);
}

TEST(Endpoint, AKeyEndsWithItsRegistration) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer does not see how libfabric orders its accesses";
#endif
    write_wrongly(true);
}

TEST_F(TwoNetworks, EveryRequestHasItsReply) {
    count_up(10000);
    EXPECT_EQ(origin_.counts().requests.load(), 10000u);
    EXPECT_EQ(target_.counts().strangers.load(), 0u);
    EXPECT_EQ(origin_.counts().strangers.load(), 0u);
}

// Delayed replies share messages, and the last ones come alone.
TEST_F(TwoNetworks, DelayedRepliesCome) {
    count_up(10000, net::FrameKind::DelayedReply);
    EXPECT_EQ(origin_.counts().requests.load(), 10000u);
    EXPECT_EQ(target_.counts().strangers.load(), 0u);
    EXPECT_EQ(origin_.counts().strangers.load(), 0u);
    count_up(1, net::FrameKind::DelayedReply);
}

// A process in no table gets no answer until it is in one.
TEST_F(TwoNetworks, AProcessInATableIsKnownByItsFirstMessage) {
    target_.connections.dismiss(job_);
    Replies replies;
    ask(replies);
    ASSERT_TRUE(origin_.engine.wait([&] { return target_.counts().strangers.load() > 0; }, kNoneDead));
    target_.connections.admit(job_);
    ask(replies);
    ASSERT_TRUE(origin_.engine.wait([&] { return replies.came.load() == 1; }, kNoneDead));
    target_.connections.dismiss(job_);
    ask(replies);
    ASSERT_TRUE(origin_.engine.wait([&] { return replies.came.load() == 2; }, kNoneDead));
    EXPECT_EQ(words_[1], 2u);
}

// Any number of piggybacks for a peer is one message with the next one.
TEST_F(TwoNetworks, PiggybacksAreJoined) {
    Replies replies;
    count_up(1);
    const std::uint64_t before = origin_.counts().messages.load();
    // Otherwise the origin's network thread, which finds nothing to do, sends the piggybacks.
    {
        const auto still = origin_.engine.seize();
        for (int i = 0; i < 5; ++i)
            ask(replies, net::FrameKind::Request, i < 4 ? When::Piggyback : When::Now);
        EXPECT_EQ(origin_.counts().messages.load() - before, 1u);
    }
    ASSERT_TRUE(origin_.engine.wait([&] { return replies.came.load() == 5; }, kNoneDead));
    EXPECT_EQ(words_[1], 6u);
}

// A delayed reply travels with the next message to the same process.
TEST_F(TwoNetworks, DelayedRepliesArePiggybacked) {
    count_up(100);
    const std::uint64_t before = target_.counts().messages.load();
    for (int i = 0; i < 100; ++i) {
        Replies replies;
        {
            const auto still = target_.engine.seize();  // or the target often handles the first before the second comes
            for (const net::FrameKind kind : {net::FrameKind::DelayedReply, net::FrameKind::Request})
                ask(replies, kind);
        }
        ASSERT_TRUE(origin_.engine.wait([&] { return replies.came.load() == 2; }, kNoneDead));
        EXPECT_EQ(replies.wrong.load(), 0u);
    }
    EXPECT_EQ(words_[1], 300u);
    // One round that brings both requests is enough for their replies to meet.
    EXPECT_LT(target_.counts().messages.load() - before, 200u);
}

// A host that polls between computations does not keep the network thread parked.
TEST_F(TwoNetworks, RarePollsOfTheHostLeaveMessagesToTheThread) {
    std::atomic<bool> over{false};
    std::thread application([&] {
        while (!over.load()) {
            target_.engine.host_polls();
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    });
    count_up(1);
    const std::uint64_t sleeps = target_.engine.sleeps();
    const std::uint64_t looks = target_.engine.polls_of_host();
    // The thread sleeps in the provider, and does not park until the host stops polling.
    while (target_.engine.polls_of_host() - looks <= 100 || target_.engine.sleeps() - sleeps <= 50) {
        count_up(1);
        std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    over.store(true);
    application.join();
}

TEST_F(TwoNetworks, MessagesAreMeasuredOnce) {
    const sync::Costs cost = origin_.measure(target_.address());
    // A loaded machine has no upper bounds.
    EXPECT_GT(cost.way, 100);
    EXPECT_GE(cost.byte, 0);
    const std::uint64_t messages = origin_.counts().messages.load();
    EXPECT_GE(messages, 3u);  // more, unless the machine has no time for it
    EXPECT_EQ(origin_.measure(target_.address()).way, cost.way);
    EXPECT_EQ(origin_.counts().messages.load(), messages);
}

// A third endpoint knows the address, and no secret.
TEST_F(TwoNetworks, StrangersAreCountedAndHarmless) {
    std::string why;
    const std::unique_ptr<fabric::Endpoint> stranger(fabric::open(wishes_, why));
    ASSERT_NE(stranger, nullptr) << why;
    if (stranger->largest_copied() == 0) GTEST_SKIP() << "the provider copies no message";
    fabric::PeerId peer = 0;
    ASSERT_TRUE(stranger->insert(target_.address().address, peer));
    Deaf deaf;
    std::uint64_t sent = 0;
    const auto send = [&](const std::vector<std::byte>& message) {
        ASSERT_LE(message.size(), stranger->largest_copied());
        fabric::Posted posted = fabric::Posted::Again;
        while ((posted = stranger->send_copied(peer, message.data(), message.size())) == fabric::Posted::Again)
            stranger->poll(deaf);
        ASSERT_EQ(posted, fabric::Posted::Yes);
        ++sent;
    };
    for (std::uint32_t i = 0; i < 100; ++i) {
        std::vector<std::byte> garbage(1 + i % 64);
        for (std::byte& byte : garbage)
            byte = static_cast<std::byte>(i * 37 + 11);
        send(garbage);
        // A frame that is right except for the secret, and one with the secret from an unknown sender.
        std::vector<std::byte> frame = framed(net::FrameKind::Request, 1, i, Body().put(0, 666));
        send(frame);
        std::memcpy(frame.data() + offsetof(net::Frame, secret), &target_.address().secret, sizeof(std::uint64_t));
        send(frame);
        // A correct frame of a process of the job, and garbage behind it.
        std::vector<std::byte> two = framed(net::FrameKind::Pong, 1, 0, Body());
        std::memcpy(two.data() + offsetof(net::Frame, secret), &target_.address().secret, sizeof(std::uint64_t));
        std::memcpy(two.data() + offsetof(net::Frame, sender), &origin_.address().token, sizeof(std::uint64_t));
        two.resize(two.size() + 1 + i % 24, std::byte{0xa5});
        send(two);
    }
    while (target_.counts().strangers.load() < sent) {
        stranger->poll(deaf);
        target_.engine.poll();
    }
    EXPECT_EQ(target_.counts().strangers.load(), sent);
    EXPECT_EQ(words_[0], 0u);
    count_up(100);
    EXPECT_EQ(target_.counts().strangers.load(), sent);
}

}  // namespace
}  // namespace osc::test
