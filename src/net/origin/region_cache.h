// The leases that this process has of one target's regions in one dynamic window: the ranges that it may address there,
// and write and read directly, without a query. The target withdraws a lease when it detaches the region. From then on
// no access begins by that lease, and this process answers the withdrawal when the accesses in flight have ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "net/target/leases.h"

namespace osc::net {

/// Thread-safe: operations use it, and the network's handler drops leases at any time. Nothing here waits.
class RegionCache {
  public:
    struct Kept {
        Lease lease;
        std::uint32_t uses = 0;  // accesses in flight by this lease, and threads that are about to begin one
    };

    /// The lease of the region that holds `address`; false if there is none here.
    bool find(std::uint64_t address, Lease& lease);

    /// The entry by which [address, address + bytes) may be accessed directly, in use until release(); null if there is
    /// none.
    Kept* use(std::uint64_t address, std::uint64_t bytes);
    /// Counts one more use by a thread that already uses the entry.
    void use(Kept& entry);
    void release(Kept& entry);

    /// The number of regions to request: more each time, because a process that often sends look-ups uses many regions.
    /// For one thread at a time.
    std::uint32_t ahead() { return std::exchange(ahead_, std::min(2 * ahead_, kMostLeases)); }

    /// Before and after a look-up at the target, which answers with `leases`. An answer may arrive after the withdrawal
    /// of one of its leases. One look-up at a time.
    void asks();
    void answered(std::span<const Lease> leases);

    /// See Caches.
    bool drop(std::uint64_t address, std::uint32_t number);

    static constexpr std::size_t kMost = 4096;  // leases that are kept; then those not in use are forgotten

  private:
    using Entries = std::map<std::uint64_t, Kept>;  // by address
    Entries::iterator holding(std::uint64_t address);
    bool retire(Entries::iterator entry);

    std::uint32_t ahead_ = 1;
    std::mutex mutex_;
    Entries entries_;
    std::vector<Entries::node_type> retired_;  // in use, and not to be used again
    bool asking_ = false;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> withdrawn_;  // while asking
};

}  // namespace osc::net
