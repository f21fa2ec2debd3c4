// The transport to the regions that a target on another node has attached to a dynamic window. It checks each piece of
// an operation against the leases of those regions and refuses an address in no region before any byte moves. Large
// pieces go directly, region by region; all others go in messages.
#pragma once

#include "net/origin/stream.h"

namespace osc::net {

/// For one operation, by the thread that holds the stream's mutex.
class Attached final : public Transport {
  public:
    explicit Attached(Stream& stream) : stream_(stream) {}

    void move_all(const op::Call& call, std::int64_t start) override;
    void update_all(const Update& how, std::int64_t start, op::Cursor target, const std::byte* origin,
                    std::byte* result, std::size_t bytes) override;
    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    Fault finish() override;

  private:
    bool look_up(std::uint64_t address, Lease& lease);
    bool holds(std::int64_t disp, std::size_t bytes, std::size_t width);
    bool holds_all(op::Cursor pieces, std::int64_t start, std::size_t width);
    bool directly(bool write, std::int64_t disp, void* memory, std::size_t bytes);

    Stream& stream_;
    Fault fault_ = Fault::None;
};

}  // namespace osc::net
