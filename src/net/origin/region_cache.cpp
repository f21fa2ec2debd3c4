// Keeps leases and drops withdrawn ones.
// Build: osc_core_cold
#include "net/origin/region_cache.h"

#include <algorithm>
#include <iterator>

namespace osc::net {

RegionCache::Entries::iterator RegionCache::holding(std::uint64_t address) {
    const auto after = entries_.upper_bound(address);
    if (after == entries_.begin()) return entries_.end();
    const auto entry = std::prev(after);
    return address - entry->first < entry->second.lease.size ? entry : entries_.end();
}

bool RegionCache::find(std::uint64_t address, Lease& lease) {
    const std::lock_guard lock(mutex_);
    const auto entry = holding(address);
    if (entry == entries_.end()) return false;
    lease = entry->second.lease;
    return true;
}

RegionCache::Kept* RegionCache::use(std::uint64_t address, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = holding(address);
    if (found == entries_.end()) return nullptr;
    Kept& entry = found->second;
    if (entry.lease.exposed != kExposed || bytes > entry.lease.size - (address - found->first)) return nullptr;
    ++entry.uses;
    return &entry;
}

void RegionCache::use(Kept& entry) {
    const std::lock_guard lock(mutex_);
    ++entry.uses;
}

void RegionCache::release(Kept& entry) {
    const std::lock_guard lock(mutex_);
    if (--entry.uses > 0) return;
    std::erase_if(retired_, [&](const Entries::node_type& retired) { return &retired.mapped() == &entry; });
}

// False if it is in use.
bool RegionCache::retire(Entries::iterator entry) {
    if (entry->second.uses == 0) {
        entries_.erase(entry);
        return true;
    }
    retired_.push_back(entries_.extract(entry));  // its address does not change
    return false;
}

void RegionCache::asks() {
    const std::lock_guard lock(mutex_);
    asking_ = true;
}

void RegionCache::answered(std::span<const Lease> leases) {
    const std::lock_guard lock(mutex_);
    asking_ = false;
    if (entries_.size() + leases.size() > kMost)
        std::erase_if(entries_, [](const auto& entry) { return entry.second.uses == 0; });
    for (const Lease& lease : leases) {
        if (lease.size == 0 ||
            std::ranges::find(withdrawn_, std::pair(lease.address, lease.number)) != withdrawn_.end())
            continue;
        const auto [at, fresh] = entries_.try_emplace(lease.address, Kept{lease, 0});
        if (fresh) continue;
        if (at->second.lease.number == lease.number) {
            at->second.lease = lease;  // it may be exposed by now
        } else {
            retire(at);
            entries_.try_emplace(lease.address, Kept{lease, 0});
        }
    }
    withdrawn_.clear();
}

bool RegionCache::drop(std::uint64_t address, std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    const std::pair lease(address, number);
    if (asking_ && std::ranges::find(withdrawn_, lease) == withdrawn_.end()) withdrawn_.push_back(lease);
    const auto entry = entries_.find(address);
    if (entry != entries_.end() && entry->second.lease.number == number) return retire(entry);
    return std::ranges::none_of(retired_, [&](const Entries::node_type& retired) {
        return retired.key() == address && retired.mapped().lease.number == number;
    });
}

}  // namespace osc::net
