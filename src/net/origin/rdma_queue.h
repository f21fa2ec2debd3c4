// The direct transfers of a stream: in flight, or deferred until the target's lock is confirmed and there is room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "net/origin/completion.h"
#include "net/origin/in_flight.h"
#include "net/origin/region_cache.h"
#include "net/origin/stream_fault.h"
#include "net/origin/stream_route.h"

namespace osc::net {

/// An atomic on a row of elements, and the destination of their previous values.
struct RowUpdate {
    fabric::AtomicRow row;
    void* result;  // null: none
};

/// One transfer of at most the provider's largest size, or one atomic on a row.
struct RdmaRequest {
    bool write;
    std::uint64_t address, key;
    std::byte* memory;
    std::size_t bytes;
    RegionCache::Entry* entry;    // the lease that the transfer uses; null outside dynamic windows
    Message* lent;                // the message with `memory` as its body, released at the end; or null
    SharedCompletion completion;  // or null
    std::uint64_t serial = 0;
    std::unique_ptr<RowUpdate> update = nullptr;  // null: `write`, `memory` and `bytes` say what is done
};

/// Providers need not keep the order of atomics, so one that touches the elements of another in flight starts behind
/// it: the accumulates of one origin on one location are ordered (MPI 4.1 section 12.7.2). Under the stream's mutex,
/// unless said otherwise.
class RdmaQueue {
  public:
    static constexpr std::size_t kTransfers = 16;

    RdmaQueue(const StreamRoute& route, StreamFault& faults, RegionCache& regions);

    /// Starts a transfer, or defers it. `confirmed`: the lock is. `refused`: the target has refused the lock.
    void add(RdmaRequest&& request, bool confirmed, bool refused);
    /// Starts deferred transfers, in order; true if it started any.
    bool proceed(bool confirmed, bool refused);

    /// Whether the provider had no room for the first deferred transfer.
    bool no_room() const { return no_room_; }
    std::size_t deferred() const { return waiting_.size(); }
    /// Whether a transfer uses this process's memory.
    bool uses_memory() const { return deferred() > 0 || active_.load(std::memory_order_acquire) != 0; }
    /// The serial of the last transfer that was added.
    std::uint64_t issued() const { return serial_; }
    /// Whether all transfers up to this serial have started, or ended. Thread-safe.
    bool started(std::uint64_t serial) const { return waiting_from_.load(std::memory_order_seq_cst) > serial; }
    bool ended(std::uint64_t serial) const { return started(serial) && flight_.ended(serial); }

  private:
    struct Place {
        Transfer transfer;  // first
        std::atomic<std::uint64_t> serial{0};
        RegionCache::Entry* entry = nullptr;
        Message* lent = nullptr;
        SharedCompletion completion;
        std::unique_ptr<RowUpdate> update;
        std::uint64_t updated_from = 0;  // the target's addresses that the last transfer here updated
        std::uint64_t updated_to = 0;    // equal: none
    };

    bool may_start(const RdmaRequest& request) { return has_room() && !conflicts(request); }
    bool conflicts(const RdmaRequest& request);
    bool has_room() { return route_.to.ended() || flight_.free() != nullptr; }
    bool start(RdmaRequest& request, bool refused);
    bool post(Place& place, const RdmaRequest& request);
    void publish();
    static void ended(Transfer& transfer, Status status);

    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    const StreamRoute route_;
    StreamFault& faults_;
    RegionCache& regions_;
    std::deque<RdmaRequest> waiting_;
    std::uint64_t serial_ = 0;
    bool no_room_ = false;
    // The serial of the first in waiting_. A transfer has its place in flight_ before it leaves waiting_, so a thread
    // that reads this first misses none.
    std::atomic<std::uint64_t> waiting_from_{kNone};
    InFlight<Place, kTransfers> flight_;
    std::atomic<std::uint32_t> active_{0};  // places taken
};

}  // namespace osc::net
