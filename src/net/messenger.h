// Requests and replies between processes of different nodes: numbers requests, checks what arrives, brings replies to
// their origins, and hands the requests of others to the TargetService. The FabricSender carries the messages.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "net/channels/fabric_sender.h"
#include "net/target/target_service.h"

namespace osc::net {

/// The origin of a request. Called under the drive lock, by any thread.
class ReplyHandler {
  public:
    /// The reply: `data` is what the records return. The status of the connection's end if there will be none.
    virtual void answered(Status status, const std::byte* data, std::size_t bytes) = 0;

  protected:
    ~ReplyHandler() = default;
};

/// The requests of this process that await their replies, by number. A number is given again only after its reply.
/// Thread-safe.
class RequestTable {
  public:
    std::uint32_t add(Connection& to, ReplyHandler& handler) {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) {
            base::insist([&] { free_.reserve(requests_.size() + 1); });  // take() takes no memory
            base::insist([&] { requests_.push_back({&to, &handler}); });
            return static_cast<std::uint32_t>(requests_.size() - 1);
        }
        const std::uint32_t number = free_.back();
        free_.pop_back();
        requests_[number] = {&to, &handler};
        return number;
    }

    /// Ends a request by a reply from its peer; null if there is no such request.
    ReplyHandler* take(const Connection& from, std::uint32_t number) {
        const std::lock_guard lock(mutex_);
        return number < requests_.size() && requests_[number].to == &from ? free(number) : nullptr;
    }

    /// Ends all requests to a peer.
    std::vector<ReplyHandler*> take_all(const Connection& to) {
        const std::lock_guard lock(mutex_);
        std::vector<ReplyHandler*> handlers;
        for (std::uint32_t number = 0; number < requests_.size(); ++number)
            if (requests_[number].to == &to) handlers.push_back(free(number));
        return handlers;
    }

    /// Appends the peers with requests whose connections have ended.
    void ended_peers(std::vector<Connection*>& peers) {
        const std::lock_guard lock(mutex_);
        for (const Request& request : requests_)
            if (request.to != nullptr && request.to->ended()) peers.push_back(request.to);
    }

  private:
    struct Request {
        Connection* to = nullptr;  // null: the number is free
        ReplyHandler* handler = nullptr;
    };

    ReplyHandler* free(std::uint32_t number) {
        free_.push_back(number);
        ReplyHandler* handler = requests_[number].handler;
        requests_[number] = {};
        return handler;
    }

    std::mutex mutex_;
    std::vector<Request> requests_;
    std::vector<std::uint32_t> free_;
};

/// Thread-safe, unless said otherwise.
class Messenger final : public SendFailures, public fabric::Receiver, Answers {
  public:
    Messenger(Connections& connections, FabricSender& sender, progress::ProgressEngine& engine, Counts& counts)
        : connections_(connections), sender_(sender), engine_(engine), counts_(counts), service_(*this) {}

    /// Before all others. `secret`: of this process. `largest_body`: the most bytes of a message's body.
    void open(std::uint64_t secret, std::size_t largest_body);
    /// Serves a window of this process to other nodes from now on, or no longer.
    std::shared_ptr<Arrivals> serve(const ExposedWindow& window);
    void end_service(std::uint64_t window);
    /// See TargetService.
    void find_awaited(std::uint64_t window, const sync::WaitQuestion& wait, sync::Awaited& awaited);

    /// Sends a request or query, whose reply goes to `handler`; takes the message over.
    void request(Connection& to, FrameKind kind, std::uint64_t window, std::uint32_t origin, Message* message,
                 ReplyHandler& handler, FabricSender::When when = FabricSender::When::Now);

    /// False if the process is dead or its connection is lost. Otherwise asks it if it has been silent, without
    /// waiting.
    bool alive(Connection& peer);

    /// The peer is in doubt: look_for_ends() settles whether it is dead or its connection lost.
    void failed(Connection& peer) override;
    /// Ends the connection: the peer lives, and this process cannot send to it.
    void no_memory(Connection& peer) override;

    // Under the drive lock.
    /// Goes on with requests that waited for a lock or a fence of this process.
    void resume_waiting();
    /// Whether some still wait, which no event announces the end of.
    bool waits() const { return waits_; }
    /// Looks for the dead among the peers that something here waits for.
    [[gnu::cold]] void look_for_dead();
    /// Looks at the peers in doubt.
    void look_for_ends();

  private:
    void look_at(const std::vector<Connection*>& peers);
    [[gnu::cold]] void report_end(Connection& peer);
    void received(std::byte* message, std::size_t bytes) override;
    void handle(Connection& from, const Frame& frame, const std::byte* body);
    void answer(std::uint64_t token, std::uint32_t number, Status status, const std::byte* data,
                std::size_t bytes) override;
    void dropped() override { count(counts_.strangers); }

    Connections& connections_;
    FabricSender& sender_;
    progress::ProgressEngine& engine_;
    Counts& counts_;
    std::uint64_t secret_ = 0;
    RequestTable requests_;
    // Under the drive lock.
    TargetService service_;
    bool waits_ = false;
    FabricSender::When reply_when_ = FabricSender::When::Now;  // of the request that is being handled
};

}  // namespace osc::net
