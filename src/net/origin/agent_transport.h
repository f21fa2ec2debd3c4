// The transport to memory that only its owner can reach: gathers records in messages to the owner's agent, up to 8 of
// which are in flight at once. The agent executes the messages of one object in order.
#pragma once

#include <array>
#include <cstdint>

#include "net/channels/outbox.h"
#include "net/origin/record_transport.h"

namespace osc::net {

class AgentTransport final : public RecordTransport {
  public:
    /// `window`: the agent's number for the window; `base`: address of displacement 0 there; `rank` of the target. With
    /// `incomplete`, finish() does not await an operation that returns nothing, but leaves it to `incomplete`; without,
    /// the operation is at the target when finish() returns.
    AgentTransport(Outbox& outbox, AgentRoute& route, std::uint64_t window, std::uint64_t base, std::uint32_t rank,
                   IncompleteOps* incomplete = nullptr)
        : RecordTransport(kMessageBody - sizeof(Record), (kMessageBody - sizeof(Record)) / 2, base, kToReader),
          outbox_(outbox),
          route_(route),
          window_(window),
          rank_(rank),
          incomplete_(incomplete) {}
    ~AgentTransport() override { finish(); }
    AgentTransport(const AgentTransport&) = delete;
    AgentTransport& operator=(const AgentTransport&) = delete;

    Fault finish() override;

  private:
    static constexpr std::size_t kToReader = std::size_t{16} << 10;  // less arrives sooner by a cache that cores share
    using RecordTransport::add;
    std::byte* add(const Record& record, std::size_t segments) override;
    void returns(const ReplySegment& segment) override;
    bool claim();
    void send();
    void await_oldest();

    Outbox& outbox_;
    AgentRoute& route_;
    const std::uint64_t window_;
    const std::uint32_t rank_;
    IncompleteOps* const incomplete_;
    bool returns_data_ = false;
    std::uint32_t filling_ = Outbox::kNone;                 // slot that is being filled
    std::size_t bytes_ = 0;                                 // of its records
    std::size_t reply_bytes_ = 0;                           // that these return
    std::array<std::uint32_t, kMessageSlots> in_flight_{};  // slots, oldest first, from `first_` on, cyclically
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
    Fault fault_ = Fault::None;
};

}  // namespace osc::net
