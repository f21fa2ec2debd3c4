// Keeping what has come for a thread that asks later.
#include "net/target/arrivals.h"

#include <algorithm>
#include <utility>

namespace osc::net {

bool Arrivals::count(std::uint32_t sender, std::uint64_t target, std::uint32_t closes, std::uint32_t processes) {
    if (target >= processes || closes >= processes) return false;
    const std::lock_guard lock(mutex_);
    parts_[sender].closes[static_cast<std::uint32_t>(target)] += closes;
    return true;
}

void Arrivals::arrived(std::uint32_t sender, std::uint64_t barrier, std::uint32_t round, std::uint32_t wants) {
    const std::lock_guard lock(mutex_);
    Arrival arrival{barrier, round, {}};
    if (auto parts = parts_.extract(sender)) arrival.news = std::move(parts.mapped());
    arrival.news.wants = wants;
    came_.push_back(std::move(arrival));
}

bool Arrivals::take(std::uint64_t barrier, std::uint32_t round, sync::FenceSummary& news) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        came_, [&](const Arrival& arrival) { return arrival.barrier == barrier && arrival.round == round; });
    if (found == came_.end()) return false;
    news.add(found->news);
    came_.erase(found);
    return true;
}

bool Arrivals::is_open(std::uint64_t fence) {
    if (open_.load(std::memory_order_acquire) >= fence) return true;
    // In one order with open(): one of the two sees the other.
    awaited_.store(true, std::memory_order_seq_cst);
    return open_.load(std::memory_order_seq_cst) >= fence;
}

bool Arrivals::open(std::uint64_t fence) {
    open_.store(fence, std::memory_order_seq_cst);
    return awaited_.load(std::memory_order_seq_cst) && awaited_.exchange(false, std::memory_order_seq_cst);
}

void Arrivals::tested_by(std::uint32_t target) {
    const std::lock_guard lock(mutex_);
    testers_.insert(target);
    has_testers_.store(true, std::memory_order_seq_cst);
}

bool Arrivals::is_tested_by(std::uint32_t target) {
    if (!has_testers_.load(std::memory_order_seq_cst)) return false;
    const std::lock_guard lock(mutex_);
    return testers_.contains(target);
}

}  // namespace osc::net
