// Queues operations by target.
#include "op/queue.h"

#include <utility>

#include "base/assert.h"

namespace osc::op {

std::size_t Queue::add(std::uint32_t target, Deferral&& operation) {
    const std::lock_guard lock(mutex_);
    OSC_ASSERT(some_.load(std::memory_order_relaxed) == operations_.size());
    std::vector<Deferral>& all = operations_[target];
    all.push_back(std::move(operation));
    some_.store(operations_.size(), std::memory_order_release);
    return all.size();
}

bool Queue::holds(std::uint32_t target) const {
    const std::lock_guard lock(mutex_);
    return operations_.contains(target);
}

// Removes and returns all operations of a target. The target keeps an empty entry while they are performed, so that
// holds() stays true; a call that finds the entry empty removes it.
std::vector<Deferral> Queue::take(std::uint32_t target) {
    const std::lock_guard lock(mutex_);
    const auto found = operations_.find(target);
    if (found == operations_.end()) return {};
    std::vector<Deferral> taken = std::exchange(found->second, {});
    if (taken.empty()) operations_.erase(found);
    some_.store(operations_.size(), std::memory_order_release);
    return taken;
}

void Queue::discard(std::uint32_t target) {
    if (!has(target)) return;
    const std::lock_guard lock(mutex_);
    operations_.erase(target);
    some_.store(operations_.size(), std::memory_order_release);
}

std::vector<std::uint32_t> Queue::targets() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint32_t> all;
    all.reserve(operations_.size());
    for (const auto& [target, operations] : operations_)
        all.push_back(target);
    return all;
}

}  // namespace osc::op
