// The transport to memory that only its owner can reach: pieces are gathered into messages to the owner's agent, a few
// of which are under way at once. Messages of one object are executed in the order in which they were filled.
#pragma once

#include <array>
#include <cstdint>

#include "agent/message.h"
#include "op/transport.h"
#include "transport/agent/outbox.h"

namespace osc::agent {

class Remote final : public Transport {
  public:
    /// `window`: the number under which the target's agent serves the window; `base`: address of displacement 0 there;
    /// `rank` of the target. With `pending`, an operation that returns nothing is not awaited by finish(), but left to
    /// that; without, all is at the target then.
    Remote(Outbox& outbox, Connection& connection, std::uint64_t window, std::uint64_t base, std::uint32_t rank,
           Pending* pending = nullptr)
        : outbox_(outbox), connection_(connection), window_(window), base_(base), rank_(rank), pending_(pending) {}
    ~Remote() override { finish(); }
    Remote(const Remote&) = delete;
    Remote& operator=(const Remote&) = delete;

    void put(std::int64_t disp, const void* from, std::size_t bytes) override;
    void get(std::int64_t disp, void* to, std::size_t bytes) override;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    void compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                          void* result) override;
    Fault finish() override;

  private:
    std::size_t room(Kind kind, const Update& how);
    std::size_t cut(Kind kind, std::int64_t disp, std::size_t bytes);
    std::byte* add(std::int64_t disp, std::size_t bytes, void* landing);
    bool acquire();
    void send();
    void collect();
    void land(std::uint32_t number);

    Outbox& outbox_;
    Connection& connection_;
    std::uint64_t window_;
    std::uint64_t base_;
    std::uint32_t rank_;
    Pending* pending_;
    bool returns_ = false;
    Update how_{};                              // of the messages under way, where they are updates
    std::uint32_t filling_ = Outbox::kNone;     // slot that is being filled
    Header header_{};                           // of that message
    std::array<std::uint32_t, kSlots> sent_{};  // slots under way, oldest first, from `first_` on, cyclically
    std::uint32_t first_ = 0;
    std::uint32_t under_way_ = 0;
    Fault fault_ = Fault::None;
};

}  // namespace osc::agent
