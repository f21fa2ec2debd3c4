// The leases that this process holds of one target's regions in one dynamic window: what it may address there, and
// write and read directly, without asking. The target withdraws a lease when it detaches the region; from then on no
// access begins by it, and the withdrawal is answered when those under way have ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "transport/am/target/leases.h"

namespace osc::am {

/// Thread-safe: operations use it, and the network's handler drops leases at any time. Nothing here waits.
class RegionCache {
  public:
    struct Entry {
        Lease lease;
        std::uint32_t uses = 0;  // accesses under way that go by it, and who is about to begin one
    };

    /// The lease of the region that holds `address`; false if there is none here.
    bool find(std::uint64_t address, Lease& lease);

    /// The entry by which [address, address + bytes) may be accessed directly, in use until release(); null if there is
    /// none.
    Entry* use(std::uint64_t address, std::uint64_t bytes);
    /// Once more, by who uses it.
    void use(Entry& entry);
    void release(Entry& entry);

    /// How many regions to ask for: more each time, because who has to ask often has many of them before it. By one
    /// thread at a time.
    std::uint32_t ahead() { return std::exchange(ahead_, std::min(2 * ahead_, kMostLeases)); }

    /// Around a question to the target, whose answer `leases` is: an answer may come behind a withdrawal of what it
    /// says. One question at a time.
    void asks();
    void answered(std::span<const Lease> leases);

    /// See Caches.
    bool drop(std::uint64_t address, std::uint32_t number);

    static constexpr std::size_t kMost = 4096;  // leases that are kept; then those not in use are forgotten

  private:
    using Entries = std::map<std::uint64_t, Entry>;  // by address
    Entries::iterator holding(std::uint64_t address);
    bool retire(Entries::iterator entry);

    std::uint32_t ahead_ = 1;
    std::mutex mutex_;
    Entries entries_;
    std::vector<Entries::node_type> retired_;  // in use, and not to be used again
    bool asking_ = false;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> withdrawn_;  // while asking
};

}  // namespace osc::am
