// A peer is killed while this process has injected writes queued for it: the provider must report errors at most, and
// its calls must go on working. Real endpoints over libfabric on the loopback interface, the peer in a child process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "transport/fabric/endpoint.h"

namespace osc::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Deaf final : fabric::Receiver {
    void received(std::byte*, std::size_t) override {}
};

// The data that the child writes to the pipe.
struct Offer {
    fabric::Address address;
    std::uint64_t base = 0;
    std::uint64_t key = 0;
    std::size_t bytes = 0;  // of the exposed memory; 0: the child has no endpoint
};

[[noreturn]] void be_peer(const fabric::Wishes& wishes, int pipe) {
    static std::array<std::byte, 4096> memory;
    std::string why;
    Offer offer;
    fabric::Endpoint* const endpoint = fabric::open(wishes, why);
    fabric::Exposed exposed;
    if (endpoint != nullptr && endpoint->expose(memory.data(), memory.size(), exposed))
        offer = {endpoint->address(), exposed.base, exposed.key, memory.size()};
    if (::write(pipe, &offer, sizeof offer) != sizeof offer || offer.bytes == 0) ::_exit(1);
    for (Deaf deaf;;)
        endpoint->poll(deaf);
}

// Whether the endpoint has atomics, which give tcp;ofi_rxm a thread of its own.
class DeadPeer : public ::testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer does not see how libfabric orders its accesses";
#endif
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        const fabric::Wishes wishes{"tcp;ofi_rxm", "", true, GetParam()};
        child_ = ::fork();
        ASSERT_GE(child_, 0);
        if (child_ == 0) be_peer(wishes, ends[1]);
        ::close(ends[1]);
        const bool whole = ::read(ends[0], &offer_, sizeof offer_) == sizeof offer_;
        ::close(ends[0]);
        std::string why;
        if (whole && offer_.bytes != 0) endpoint_.reset(fabric::open(wishes, why));
        if (endpoint_ == nullptr) GTEST_SKIP() << why;
        ASSERT_TRUE(endpoint_->insert(offer_.address, peer_));
    }
    void TearDown() override {
        end_child();
    }

    void end_child() {
        if (child_ <= 0) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        child_ = -1;
    }
    void poll_for(std::chrono::milliseconds time) {
        for (const Clock::time_point end = Clock::now() + time; Clock::now() < end;)
            endpoint_->poll(deaf_);
    }

    pid_t child_ = -1;
    Offer offer_;
    std::unique_ptr<fabric::Endpoint> endpoint_;
    fabric::PeerId peer_ = 0;
    Deaf deaf_;
};

TEST_P(DeadPeer, QueuedInjectedWritesEndInErrors) {
    if (!endpoint_->prefers_deposits()) GTEST_SKIP() << "the provider is given no injected writes";
    std::array<std::byte, 64> data{};
    const std::size_t bytes = std::min(data.size(), endpoint_->largest_copied());
    ASSERT_GT(bytes, 0u);
    const auto deposit = [&] {
        return endpoint_->deposit(peer_, data.data(), bytes, offer_.base, offer_.key, nullptr);
    };
    fabric::Posted posted = fabric::Posted::Again;
    for (const Clock::time_point end = Clock::now() + std::chrono::seconds(10);
         posted == fabric::Posted::Again && Clock::now() < end; endpoint_->poll(deaf_))
        posted = deposit();
    ASSERT_EQ(posted, fabric::Posted::Yes);
    poll_for(std::chrono::milliseconds(20));
    // The peer reads no more, so the socket fills up and the provider has to queue.
    ::kill(child_, SIGSTOP);
    int refused = 0, queued = 0;
    for (; refused < 10 && queued < 400000; ++queued)
        if (deposit() != fabric::Posted::Yes) ++refused;
    end_child();
    poll_for(std::chrono::milliseconds(300));
    // The endpoint still serves: this process reaches itself.
    fabric::PeerId self = 0;
    ASSERT_TRUE(endpoint_->insert(endpoint_->address(), self));
    std::array<std::byte, 64> here{};
    fabric::Exposed exposed;
    ASSERT_TRUE(endpoint_->expose(here.data(), here.size(), exposed));
    data.fill(std::byte{7});
    posted = fabric::Posted::Again;
    for (const Clock::time_point end = Clock::now() + std::chrono::seconds(10);
         (posted == fabric::Posted::Again || here[0] != data[0]) && Clock::now() < end; endpoint_->poll(deaf_))
        if (posted == fabric::Posted::Again)
            posted = endpoint_->deposit(self, data.data(), bytes, exposed.base, exposed.key, nullptr);
    EXPECT_EQ(posted, fabric::Posted::Yes);
    EXPECT_EQ(here[0], data[0]);
    endpoint_->revoke(exposed);
}

INSTANTIATE_TEST_SUITE_P(Atomics, DeadPeer, ::testing::Bool());

}  // namespace
}  // namespace osc::test
