// Two networks in one process, over libfabric on the loopback interface: requests and replies, and what a stranger
// sends.
#include <rdma/fabric.h>

#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "agent/book.h"
#include "agent/network.h"
#include "net_target.h"

namespace osc::test {
namespace {

// Slots are for libfabric 1.17 and older (docs/PROVIDERS.md).
constexpr bool kSlots = FI_VERSION_LT(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 18));

class Replies final : public net::Sender {
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

// Of requests that count, in the order in which they were made.
class Turns final : public net::Sender {
  public:
    void answered(net::Status status, const std::byte* data, std::size_t bytes) override {
        std::uint64_t value = 0;
        if (bytes == sizeof value) std::memcpy(&value, data, sizeof value);
        if (status != net::Status::Done || bytes != 8 || value != came.load()) wrong.fetch_add(1);
        came.fetch_add(1);
    }
    std::atomic<std::uint64_t> came{0};
    std::atomic<std::uint64_t> wrong{0};
};

struct Deaf final : ofi::Receiver {
    void received(std::byte*, std::size_t) override {}
};

class TwoNetworks : public ::testing::Test {
  protected:
    static constexpr ofi::Wishes kWishes{"tcp;ofi_rxm", "", true, false};

    void SetUp() override {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer does not see how libfabric orders its accesses";
#endif
        std::string why;
        if (!target_.open(kWishes, 10000, why) || !origin_.open(kWishes, 10000, why)) GTEST_SKIP() << why;
        to_target_ = origin_.connect(target_.card());
        ASSERT_NE(to_target_, nullptr);
        // As in a team: the origin is connected to, and the target has it in its book.
        book_.cards[0] = target_.card();
        book_.cards[1] = origin_.card();
        book_.index();
        target_.admit(book_);
        tokens_ = {target_.card().token, origin_.card().token};
        net::Serving window;
        window.id = kWindow;
        window.base = reinterpret_cast<std::byte*>(words_.data());
        window.size = words_.size() * sizeof words_[0];
        window.slot = &ranks_.slot();
        window.processes = 2;
        window.liveness = &ranks_.lives();
        window.tokens = tokens_.data();
        target_.serve(window);
    }
    void TearDown() override {
        if (target_.is_open()) target_.end_service(kWindow);
        origin_.close();
        target_.close();
    }
    /// Asks for one more in the second word, and for what was there.
    void ask(Replies& replies, net::FrameKind kind = net::FrameKind::Request, bool held = false) {
        const Body body = Body().sum(net::What::UpdateReturn, 8, 1);
        net::Message* message = origin_.claim();
        std::memcpy(message->body(), body.bytes.data(), body.bytes.size());
        message->bytes = body.bytes.size();
        origin_.request(*to_target_, kind, kWindow, 1, message, replies, held);
    }
    /// Fetches and adds one, `count` times, with many under way.
    void count_up(std::uint64_t count, net::FrameKind kind = net::FrameKind::Request) {
        Replies replies;
        const std::uint64_t before = words_[1];
        for (std::uint64_t i = 0; i < count; ++i) {
            ask(replies, kind);
            const auto few_open = [&] { return replies.came.load() + 64 > i; };
            ASSERT_TRUE(origin_.wait(few_open, kNobodyDead));
        }
        ASSERT_TRUE(origin_.wait([&] { return replies.came.load() == count; }, kNobodyDead));
        EXPECT_EQ(replies.wrong.load(), 0u);
        // Each has seen another value, and all of them in a row.
        EXPECT_EQ(replies.sum.load(), count * before + count * (count - 1) / 2);
        EXPECT_EQ(words_[1], before + count);
    }

    Deadline deadline_{120};
    Ranks ranks_{2, 1};
    std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(8);
    std::array<std::uint64_t, 2> tokens_{};
    alignas(net::Card) std::array<std::byte, 512> book_memory_{};
    net::Book book_ = net::Book::at(book_memory_.data(), 2, 2);
    net::Network target_;
    net::Network origin_;
    net::Connection* to_target_ = nullptr;
};

TEST(Book, FindsEachProcessByItsToken) {
    constexpr std::uint32_t kProcesses = 100;
    std::vector<std::uint64_t> memory(net::Book::bytes_for(kProcesses, 7) / sizeof(std::uint64_t) + 1);
    net::Book book = net::Book::at(reinterpret_cast<std::byte*>(memory.data()), kProcesses, 7);
    const auto token_of_rank = [](std::uint64_t rank) { return (rank + 1) * 0x9e3779b97f4a7c15ull; };
    for (std::uint32_t rank = 0; rank < kProcesses; ++rank)
        book.cards[rank].token = token_of_rank(rank);
    book.index();
    for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
        EXPECT_EQ(book.tokens[rank], token_of_rank(rank));
        EXPECT_EQ(book.find(token_of_rank(rank)), &book.cards[rank]);
    }
    EXPECT_EQ(book.find(0), nullptr);
    EXPECT_EQ(book.find(token_of_rank(kProcesses)), nullptr);
    EXPECT_EQ(book.find(~std::uint64_t{0}), nullptr);
    // The last part ends where the book does.
    EXPECT_EQ(reinterpret_cast<std::byte*>(book.leaders.data() + book.leaders.size()) -
                  reinterpret_cast<std::byte*>(memory.data()),
              static_cast<std::ptrdiff_t>(net::Book::bytes_for(kProcesses, 7)));
}

TEST_F(TwoNetworks, EveryRequestHasItsReply) {
    count_up(10000);
    EXPECT_EQ(origin_.counts().requests.load(), 10000u);
    EXPECT_EQ(target_.counts().strangers.load(), 0u);
    EXPECT_EQ(origin_.counts().strangers.load(), 0u);
}

// Their replies share messages, and the last ones come by themselves.
TEST_F(TwoNetworks, UnhurriedRequestsHaveTheirRepliesToo) {
    count_up(10000, net::FrameKind::Unhurried);
    EXPECT_EQ(origin_.counts().requests.load(), 10000u);
    EXPECT_EQ(target_.counts().strangers.load(), 0u);
    EXPECT_EQ(origin_.counts().strangers.load(), 0u);
    count_up(1, net::FrameKind::Unhurried);
}

// Who is in no book is not answered, until it is in one.
TEST_F(TwoNetworks, WhoIsInABookIsKnownByItsFirstMessage) {
    target_.dismiss(book_);
    Replies replies;
    ask(replies);
    ASSERT_TRUE(origin_.wait([&] { return target_.counts().strangers.load() > 0; }, kNobodyDead));
    target_.admit(book_);
    ask(replies);
    ASSERT_TRUE(origin_.wait([&] { return replies.came.load() == 1; }, kNobodyDead));
    target_.dismiss(book_);
    ask(replies);
    ASSERT_TRUE(origin_.wait([&] { return replies.came.load() == 2; }, kNobodyDead));
    EXPECT_EQ(words_[1], 2u);
}

// However many are held for a process, they are one message with the next one to it.
TEST_F(TwoNetworks, WhatIsHeldIsJoined) {
    Replies replies;
    count_up(1);
    const std::uint64_t before = origin_.counts().messages.load();
    // Else the origin's thread, which finds nothing to do, sends what is held.
    origin_.while_still([&] {
        for (int i = 0; i < 5; ++i)
            ask(replies, net::FrameKind::Request, i < 4);
        EXPECT_EQ(origin_.counts().messages.load() - before, 1u);
    });
    ASSERT_TRUE(origin_.wait([&] { return replies.came.load() == 5; }, kNobodyDead));
    EXPECT_EQ(words_[1], 6u);
}

// What was held goes along with the next message to the same process.
TEST_F(TwoNetworks, HeldRepliesAreTakenAlong) {
    count_up(100);  // slots have been offered: what is counted are replies
    const std::uint64_t before = target_.counts().messages.load();
    for (int i = 0; i < 100; ++i) {
        Replies replies;
        target_.while_still([&] {  // else it is often done with the first before the second comes
            for (const net::FrameKind kind : {net::FrameKind::Unhurried, net::FrameKind::Request})
                ask(replies, kind);
        });
        ASSERT_TRUE(origin_.wait([&] { return replies.came.load() == 2; }, kNobodyDead));
        EXPECT_EQ(replies.wrong.load(), 0u);
    }
    EXPECT_EQ(words_[1], 300u);
    // One round that brings both requests is enough for their replies to meet.
    EXPECT_LT(target_.counts().messages.load() - before, 200u);
}

// By slots and the ordinary way, large and small, with all slots full and none: in one order.
TEST_F(TwoNetworks, SlotsKeepTheOrder) {
    if (!kSlots) GTEST_SKIP() << "libfabric is newer than 1.17";
    constexpr std::uint64_t kCount = 20000;
    Turns turns;
    std::minstd_rand random(1);
    for (std::uint64_t i = 0; i < kCount; ++i) {
        Body body;
        // Mostly what fits a slot with others, or alone, or does not.
        constexpr int kPuts[] = {0, 0, 0, 2, 6, 8, 40};
        for (int put = kPuts[random() % std::size(kPuts)]; put > 0; --put)
            body.put(0, i);
        body.sum(net::What::UpdateReturn, 8, 1);
        net::Message* message = origin_.claim();
        std::memcpy(message->body(), body.bytes.data(), body.bytes.size());
        message->bytes = body.bytes.size();
        const net::FrameKind kind = random() % 4 == 0 ? net::FrameKind::Unhurried : net::FrameKind::Request;
        origin_.request(*to_target_, kind, kWindow, 1, message, turns, random() % 8 == 0);
        const std::uint64_t open = i / 1000 % 2 == 0 ? 100 : 3;
        ASSERT_TRUE(origin_.wait([&] { return turns.came.load() + open > i; }, kNobodyDead));
    }
    origin_.send_held();
    ASSERT_TRUE(origin_.wait([&] { return turns.came.load() == kCount; }, kNobodyDead));
    EXPECT_EQ(turns.wrong.load(), 0u);
    EXPECT_EQ(words_[1], kCount);
    for (const net::Network* network : {&origin_, &target_}) {
        const std::uint64_t deposits = network->counts().deposits.load();
        EXPECT_GT(deposits, kCount / 20);
        EXPECT_LT(deposits, network->counts().messages.load());
        EXPECT_EQ(network->counts().strangers.load(), 0u);
    }
}

// Nothing goes the other way but that slots are empty again.
TEST_F(TwoNetworks, SlotsAreEmptiedForWhoGetsNoReplies) {
    if (!kSlots) GTEST_SKIP() << "libfabric is newer than 1.17";
    constexpr std::uint64_t kCount = 5000;
    count_up(100);
    const std::uint64_t before = origin_.counts().deposits.load();
    for (std::uint64_t i = 1; i <= kCount; ++i) {
        net::Message* message = origin_.claim();
        const Body body = Body().step(net::What::FenceOpen, static_cast<std::int64_t>(i));
        std::memcpy(message->body(), body.bytes.data(), body.bytes.size());
        message->bytes = body.bytes.size();
        origin_.notice(*to_target_, kWindow, 1, message);
        if (i % 20 != 0) continue;
        Replies replies;
        ask(replies);
        ASSERT_TRUE(origin_.wait([&] { return replies.came.load() == 1; }, kNobodyDead));
    }
    EXPECT_GT(origin_.counts().deposits.load() - before, kCount / 2);
    EXPECT_EQ(target_.counts().strangers.load(), 0u);
}

// A host that polls between computations does not keep the thread from what comes meanwhile.
TEST_F(TwoNetworks, WhoLooksInNowAndThenLeavesItToTheThread) {
    std::atomic<bool> over{false};
    std::thread application([&] {
        while (!over.load()) {
            target_.host_polls();
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    });
    count_up(1);
    const std::uint64_t sleeps = target_.counts().sleeps.load();
    const std::uint64_t looks = target_.counts().host_polls.load();
    for (int i = 0; i < 200; ++i) {
        count_up(1);
        std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    over.store(true);
    application.join();
    EXPECT_GT(target_.counts().host_polls.load() - looks, 100u);
    // It waits for the provider, not for who looks in to have stopped.
    EXPECT_GT(target_.counts().sleeps.load() - sleeps, 50u);
}

// What a peer writes into its slots is taken for what it says only as far as that can be.
TEST(Slots, GarbageIsTakenForNoMore) {
    if (!kSlots) GTEST_SKIP() << "libfabric is newer than 1.17";
    std::string why;
    constexpr ofi::Wishes kWishes{"tcp;ofi_rxm", "", true, false};
    const std::unique_ptr<ofi::Endpoint> mine(ofi::open(kWishes, why));
    const std::unique_ptr<ofi::Endpoint> peer(ofi::open(kWishes, why));
    if (mine == nullptr || peer == nullptr) GTEST_SKIP() << why;
    ASSERT_TRUE(mine->prefers_deposits());
    net::SlotsIn slots(*mine);
    ASSERT_TRUE(slots.open());
    ofi::PeerId to = 0;
    ASSERT_TRUE(peer->insert(mine->address(), to));
    Deaf deaf;
    std::minstd_rand random(1);
    net::SlotHead head;
    std::array<std::byte, net::kSlotBody> body{};
    EXPECT_FALSE(slots.landed());
    slots.begin();
    int oversized = 0;
    for (std::uint32_t count = 0; count < 300 * net::kSlots; ++count) {
        alignas(8) std::array<std::byte, 64> garbage;
        for (std::byte& byte : garbage)
            byte = static_cast<std::byte>(random());
        const bool turn = count % 3 != 0;
        net::SlotHead& sent = *reinterpret_cast<net::SlotHead*>(garbage.data() + garbage.size() - sizeof head);
        sent.sends = turn ? 0 : 1;
        sent.lap = net::lap_of(count);
        const std::uint64_t address = slots.offer().base + net::slot_end(count) - garbage.size();
        while (peer->deposit(to, garbage.data(), garbage.size(), address, slots.offer().key, nullptr) ==
               ofi::Posted::Again) {
            peer->poll(deaf);
            mine->poll(deaf);
        }
        while (!slots.landed())
            mine->poll(deaf);
        ASSERT_EQ(slots.take(head, body.data(), false, count), turn);
        if (!turn) {
            // Behind a message that has not come.
            slots.sent();
            ASSERT_TRUE(slots.take(head, body.data(), false, count));
            slots.begin();
        }
        EXPECT_EQ(head.number, sent.number);
        oversized += std::size_t{head.words} * net::kAlign > net::kSlotBody ? 1 : 0;
        ASSERT_EQ(slots.emptied(), count + 1);
        ASSERT_FALSE(slots.landed());
    }
    EXPECT_GT(oversized, 1000);
}

TEST_F(TwoNetworks, MessagesAreMeasuredOnce) {
    const net::Network::Cost cost = origin_.measure(target_.card());
    EXPECT_GT(cost.way, 100);
    EXPECT_LT(cost.way, 5e6);
    EXPECT_LT(cost.byte, 1000);
    const std::uint64_t messages = origin_.counts().messages.load();
    EXPECT_GE(messages, 3u);  // more, unless the machine has no time for it
    EXPECT_EQ(origin_.measure(target_.card()).way, cost.way);
    EXPECT_EQ(origin_.counts().messages.load(), messages);
}

// A third endpoint knows the address, and no secret.
TEST_F(TwoNetworks, StrangersAreCountedAndHarmless) {
    std::string why;
    const std::unique_ptr<ofi::Endpoint> stranger(ofi::open(kWishes, why));
    ASSERT_NE(stranger, nullptr) << why;
    ofi::PeerId peer = 0;
    ASSERT_TRUE(stranger->insert(target_.card().address, peer));
    Deaf deaf;
    std::uint64_t sent = 0;
    const auto send = [&](const std::vector<std::byte>& message) {
        ASSERT_LE(message.size(), stranger->largest_copied());
        ofi::Posted posted = ofi::Posted::Again;
        while ((posted = stranger->send_copied(peer, message.data(), message.size())) == ofi::Posted::Again)
            stranger->poll(deaf);
        ASSERT_EQ(posted, ofi::Posted::Yes);
        ++sent;
    };
    for (std::uint32_t i = 0; i < 100; ++i) {
        std::vector<std::byte> garbage(1 + i % 64);
        for (std::byte& byte : garbage)
            byte = static_cast<std::byte>(i * 37 + 11);
        send(garbage);
        // A frame that is right but for the secret, and one with the secret of a sender whom nobody knows.
        std::vector<std::byte> frame = framed(net::FrameKind::Request, 1, i, Body().put(0, 666));
        send(frame);
        std::memcpy(frame.data() + offsetof(net::Frame, secret), &target_.card().secret, sizeof(std::uint64_t));
        send(frame);
        // A frame of a process of the job that is right, and garbage behind it.
        std::vector<std::byte> two = framed(net::FrameKind::Pong, 1, 0, Body());
        std::memcpy(two.data() + offsetof(net::Frame, secret), &target_.card().secret, sizeof(std::uint64_t));
        std::memcpy(two.data() + offsetof(net::Frame, sender), &origin_.card().token, sizeof(std::uint64_t));
        two.resize(two.size() + 1 + i % 24, std::byte{0xa5});
        send(two);
    }
    while (target_.counts().strangers.load() < sent) {
        stranger->poll(deaf);
        target_.poll();
    }
    EXPECT_EQ(target_.counts().strangers.load(), sent);
    EXPECT_EQ(words_[0], 0u);
    count_up(100);
    EXPECT_EQ(target_.counts().strangers.load(), sent);
}

}  // namespace
}  // namespace osc::test
