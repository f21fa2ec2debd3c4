// The direct transfers of a stream: in flight, or deferred until the target's lock is confirmed and there is room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "transport/am/network_stack.h"
#include "transport/am/origin/completion.h"
#include "transport/am/origin/first_fault.h"
#include "transport/am/origin/in_flight.h"
#include "transport/am/origin/region_cache.h"

namespace osc::am {

/// One transfer of at most the provider's largest size.
struct RdmaRequest {
    bool write;
    std::uint64_t address, key;
    std::byte* memory;
    std::size_t bytes;
    RegionCache::Entry* entry;    // the lease that the transfer uses; null outside dynamic windows
    Message* lent;                // the message with `memory` as its body, released at the end; or null
    SharedCompletion completion;  // or null
    std::uint64_t serial = 0;
};

/// Under the stream's mutex, unless said otherwise.
class RdmaQueue {
  public:
    static constexpr std::size_t kTransfers = 16;

    RdmaQueue(NetworkStack& network, Connection& to, FirstFault& faults, RegionCache& regions);

    /// Starts a transfer, or defers it. `may_start`: the lock is confirmed. `refused`: the target has refused the lock.
    void add(RdmaRequest&& request, bool may_start, bool refused);
    /// Starts deferred transfers, in order; true if it started any.
    bool proceed(bool may_start, bool refused);

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
    };

    bool has_room() { return to_.dead.load(std::memory_order_acquire) || flight_.free() != nullptr; }
    bool start(const RdmaRequest& request, bool refused);
    void publish();
    static void ended(Transfer& transfer, int error);

    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    NetworkStack& network_;
    Connection& to_;
    FirstFault& faults_;
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

}  // namespace osc::am
