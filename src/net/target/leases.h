// The leases that the owner of a dynamic window has given to processes of other nodes. An origin that has looked a
// region up uses its lease, without a further query, until the owner withdraws it: detach asks all holders, and only
// then takes back the right to write and read the region. docs/NETWORK.md has the protocol and why it is right.
//
// The other side, where leases are kept, is Caches; the network's handler calls both.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/fault.h"
#include "fabric/endpoint.h"
#include "net/wire.h"
#include "shm/regions.h"

namespace osc::net {

/// Lease::exposed.
enum Exposure : std::uint32_t {
    kNotYet,   // no process has asked for it
    kExposed,  // key and base are for use
    kNever,    // the provider refuses the memory: only messages reach it
};

/// The owner's side. Thread-safe: all of it happens under the table's lock, so a region is either attached, and a
/// process that looks it up is noted as its holder, or it is gone, and no process gets a lease of it any more.
class Leases {
  public:
    /// `endpoint`: null in tests, where nothing is exposed.
    Leases(shm::RegionTable& table, fabric::Endpoint* endpoint) : table_(table), endpoint_(endpoint) {}
    ~Leases();
    Leases(const Leases&) = delete;
    Leases& operator=(const Leases&) = delete;

    /// Leases of the region that holds `address` and of those behind it, as many as there is room for; none if no
    /// region holds it. `holder` is a rank. For the network's handler: does not wait.
    void look_up(std::uint32_t holder, std::uint64_t address, std::span<Lease> leases);
    /// The lease of the region that holds `address`, which is exposed from now on.
    void expose(std::uint32_t holder, std::uint64_t address, Lease& lease);

    /// A region that has left the table, and what is still to be done about it.
    struct Given {
        Lease lease;
        std::vector<std::uint32_t> holders;  // sorted
        fabric::Exposed exposed;
    };
    /// Takes the region at `base` out of the table; `gone` is what was given of it.
    Fault detach(const void* base, Given& gone);
    /// When no process uses the lease any more.
    void revoke(Given& gone);

  private:
    Given& give(std::uint32_t holder, const shm::Region& region);

    shm::RegionTable& table_;
    fabric::Endpoint* endpoint_;
    std::map<std::uint64_t, Given> given_;  // by address: regions that a process has looked up
    std::uint32_t numbers_ = 0;
};

/// The leases that this process holds in one window.
class Caches {
  public:
    /// Forgets a lease of rank `owner`. False while accesses that use it are in flight: the caller asks again. Does not
    /// wait.
    virtual bool drop(std::uint32_t owner, std::uint64_t address, std::uint32_t number) = 0;

  protected:
    ~Caches() = default;
};

}  // namespace osc::net
