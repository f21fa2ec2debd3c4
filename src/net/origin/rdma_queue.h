// The direct transfers of a stream: in flight, or deferred until the target's lock is confirmed and there is room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/origin/completion.h"
#include "net/origin/region_cache.h"
#include "net/origin/stream_queue.h"

namespace osc::net {

/// An atomic on a row of elements, and the destination of their previous values.
struct RowUpdate {
    fabric::AtomicRow row;
    void* result;  // null: none
};

/// One transfer, or one atomic on a row.
struct RdmaRequest {
    bool write = false;
    std::uint64_t address = 0, key = 0;
    std::byte* memory = nullptr;  // null: `update` in place of it
    std::size_t bytes = 0;
    RegionCache::Kept* entry = nullptr;     // the lease that the transfer uses; null outside dynamic windows
    Message* lent = nullptr;                // the message with `memory` as its body, released at the end; or null
    SharedCompletion completion = nullptr;  // or null
    std::uint64_t serial = 0;
    std::unique_ptr<RowUpdate> update = nullptr;

    bool is_update() const { return memory == nullptr; }
};

/// A transfer in flight, or a piece of one.
struct RdmaPlace {
    Transfer transfer;  // first
    std::atomic<std::uint64_t> serial{0};
    RdmaRequest request;
};

/// Providers need not keep the order of atomics, so one that touches the elements of another in flight starts behind
/// it: the accumulates of one origin on one location are ordered (MPI 4.1 section 12.7.2).
///
/// A long transfer travels in pieces, few of which are in flight: what the two processes exchange meanwhile, locks,
/// replies and the pieces of the other direction, shares the connection with them and need not wait for its end.
///
/// Under the stream's mutex, unless said otherwise.
class RdmaQueue : public StreamQueue<RdmaRequest, RdmaPlace, 16> {
  public:
    RdmaQueue(const StreamRoute& route, StreamFault& faults, RegionCache& regions);

    /// Starts a transfer, or defers it. `confirmed`: the lock is. `refused`: the target has refused the lock.
    void add(RdmaRequest&& request, bool confirmed, bool refused);
    /// Starts deferred transfers, in order; true if it started any.
    bool proceed(bool confirmed, bool refused);

    /// Whether the provider had no room for the first deferred transfer.
    bool no_room() const { return no_room_; }
    /// Whether a transfer uses this process's memory.
    bool uses_memory() const { return waiting() > 0 || active_.load(std::memory_order_acquire) != 0; }

  private:
    bool conflicts(const RdmaRequest& request);
    RdmaPlace* place_for(const RdmaRequest& request, std::size_t piece);
    enum class Started { Yes, NoPlace, NoRoom };
    Started start(RdmaRequest& request, bool refused);
    Started start_piece(RdmaRequest& request, std::size_t piece);
    bool post(RdmaPlace& place);
    static void transfer_ended(Transfer& transfer, Status status);

    RegionCache& regions_;
    bool no_room_ = false;
    std::atomic<std::uint32_t> active_{0};  // places taken
    std::atomic<std::size_t> bytes_in_flight_{0};
};

}  // namespace osc::net
