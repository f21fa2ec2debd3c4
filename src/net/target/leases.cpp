// Giving leases, and taking regions away.
// Build: osc_core_cold
#include "net/target/leases.h"

#include <algorithm>
#include <utility>

namespace osc::net {

Leases::~Leases() {
    for (auto& [address, given] : given_)
        revoke(given);
}

Leases::Given& Leases::give(std::uint32_t holder, const shm::Region& region) {
    const auto [at, fresh] = given_.try_emplace(region.base);
    Given& given = at->second;
    if (fresh) given.lease = {.address = region.base, .size = region.size, .number = ++numbers_};
    const auto place = std::ranges::lower_bound(given.holders, holder);
    if (place == given.holders.end() || *place != holder) given.holders.insert(place, holder);
    return given;
}

void Leases::look_up(std::uint32_t holder, std::uint64_t address, std::span<Lease> leases) {
    table_.while_attached([&](const std::vector<shm::Region>& regions) {
        const shm::Region* region = shm::find_region(regions, address);
        if (region == nullptr) return;
        const auto ahead = static_cast<std::size_t>(regions.data() + regions.size() - region);
        for (Lease& lease : leases.first(std::min(leases.size(), ahead)))
            lease = give(holder, *region++).lease;
    });
}

void Leases::expose(std::uint32_t holder, std::uint64_t address, Lease& lease) {
    table_.while_attached([&](const std::vector<shm::Region>& regions) {
        const shm::Region* region = shm::find_region(regions, address);
        if (region == nullptr) return;
        Given& given = give(holder, *region);
        if (given.lease.exposed == kNotYet) {
            const bool can = endpoint_ != nullptr &&
                             endpoint_->expose(reinterpret_cast<void*>(region->base), region->size, given.exposed);
            given.lease.exposed = can ? kExposed : kNever;
            given.lease.key = given.exposed.key;
            given.lease.base = given.exposed.base;
        }
        lease = given.lease;
    });
}

Fault Leases::detach(const void* base, Given& gone) {
    return table_.detach(base, [&] {
        const auto found = given_.find(reinterpret_cast<std::uint64_t>(base));
        if (found == given_.end()) return;
        gone = std::move(found->second);
        given_.erase(found);
    });
}

void Leases::revoke(Given& gone) {
    if (gone.exposed.registration != nullptr) endpoint_->revoke(gone.exposed);
}

}  // namespace osc::net
