// The requests of this process that await their replies, by number. A number is given again only after its reply.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "net/connections.h"
#include "net/status.h"

namespace osc::net {

/// The origin of a request. Called under the drive lock, by any thread.
class ReplyHandler {
  public:
    /// The reply: `data` is what the records return. The status of the connection's end if there will be none.
    virtual void answered(Status status, const std::byte* data, std::size_t bytes) = 0;

  protected:
    ~ReplyHandler() = default;
};

/// Thread-safe.
class RequestTable {
  public:
    std::uint32_t add(Connection& to, ReplyHandler& handler) {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) {
            requests_.push_back({&to, &handler});
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

}  // namespace osc::net
