#include "report/remote.h"

#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "net/network_stack.h"

namespace osc::report {
namespace {

constexpr std::int64_t kSecondAfter = 400'000'000;  // ns
constexpr std::int64_t kGiveUpAfter = 1'500'000'000;

// A reply may come after its report has been printed, so the reply keeps itself alive.
class Reply final : public net::ReplyHandler {
  public:
    static std::shared_ptr<Reply> to(Window& window, std::uint32_t rank, const net::InspectQuestion& question) {
        net::NetworkStack& network = net::NetworkStack::mine();
        net::Connection* peer = network.connections.connect(window.team.job()->addresses[rank]);
        if (peer == nullptr || peer->ended()) return nullptr;
        auto reply = std::make_shared<Reply>();
        reply->self_ = reply;
        net::Message* message = network.sender.claim();
        net::Record record;
        record.opcode = net::Opcode::Inspect;
        std::memcpy(message->body(), &record, sizeof record);
        std::memcpy(message->body() + sizeof record, &question, sizeof question);
        message->bytes = sizeof record + sizeof question;
        network.messenger.request(*peer, net::FrameKind::Query, window.core.id, window.core.me, message, *reply);
        return reply;
    }

    std::optional<net::Inspection> take() const {
        if (!has_come_.load(std::memory_order_acquire)) return std::nullopt;
        return found_;
    }

  private:
    void answered(net::Status status, const std::byte* data, std::size_t bytes) override {
        const std::shared_ptr<Reply> keep = std::move(self_);
        if (status != net::Status::Done || bytes < sizeof found_) return;
        std::memcpy(&found_, data, sizeof found_);
        found_.view.wait.call[sizeof found_.view.wait.call - 1] = '\0';
        if (found_.view.wait.kind != shm::WaitKind::None) found_.view.wait.since = now_ns() - found_.view.wait.since;
        has_come_.store(true, std::memory_order_release);
    }

    std::shared_ptr<Reply> self_;
    net::Inspection found_;
    std::atomic<bool> has_come_{false};
};

}  // namespace

std::vector<std::optional<net::Inspection>> ask(Window& window, std::span<const Inquiry> inquiries) {
    const std::int64_t began = now_ns();
    const std::size_t count = inquiries.size();
    std::vector<std::optional<net::Inspection>> found(count);
    std::vector<std::shared_ptr<Reply>> replies(2 * count);
    for (std::size_t i = 0; i < count; ++i)
        replies[i] = Reply::to(window, inquiries[i].first, inquiries[i].question);
    bool asked_second = false;
    for (;;) {
        bool all = true;
        for (std::size_t i = 0; i < count; ++i) {
            for (const std::shared_ptr<Reply>& reply : {replies[i], replies[count + i]})
                if (!found[i] && reply != nullptr) found[i] = reply->take();
            all = all && found[i];
        }
        const std::int64_t spent = now_ns() - began;
        if (all || spent >= kGiveUpAfter) return found;
        if (!asked_second && spent >= kSecondAfter) {
            asked_second = true;
            for (std::size_t i = 0; i < count; ++i)
                if (!found[i] && inquiries[i].second != inquiries[i].first)
                    replies[count + i] = Reply::to(window, inquiries[i].second, inquiries[i].question);
        }
        net::NetworkStack::mine().engine.poll();
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

std::uint32_t neighbour_of(const net::Job& job, std::uint32_t rank) {
    for (std::uint32_t other = 0; other < job.node_of.size(); ++other)
        if (other != rank && job.node_of[other] == job.node_of[rank]) return other;
    return rank;
}

}  // namespace osc::report
