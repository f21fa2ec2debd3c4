// The fabric channel, receiving: takes messages from the provider in the order in which they were sent, checks the
// frames and delivers each with its connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/channels/fabric_sender.h"

namespace osc::net {

/// Under the drive lock.
class FabricReceiver final : fabric::Receiver {
  public:
    FabricReceiver(Connections& connections, FabricSender& sender, MessageHandler& handler, Counts& counts)
        : connections_(connections), sender_(sender), handler_(handler), counts_(counts) {}

    /// `secret`: of this process.
    void open(fabric::Endpoint& endpoint, std::uint64_t secret);

    /// Delivers what has come; the number of events.
    int poll();
    /// Waits for it, at most so long.
    int sleep(int milliseconds) { return endpoint_->sleep(milliseconds, *this); }
    /// Whether nothing has come; see Endpoint::may_sleep().
    bool may_sleep() { return endpoint_->may_sleep(); }

  private:
    void received(std::byte* message, std::size_t bytes) override;
    Connection* sender_of(const std::byte* message, std::size_t bytes, Frame& frame);
    void deliver_frames(std::byte* message, std::size_t bytes);
    void deliver(Connection& from, const Frame& frame, const std::byte* body);
    fabric::Endpoint* endpoint_ = nullptr;
    Connections& connections_;
    FabricSender& sender_;
    MessageHandler& handler_;
    Counts& counts_;
    std::uint64_t secret_ = 0;
};

}  // namespace osc::net
