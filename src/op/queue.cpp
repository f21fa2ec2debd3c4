// Keeping operations by target.
#include "op/queue.h"

#include <utility>

namespace osc::op {

std::size_t Queue::add(std::uint32_t target, PutOff&& operation) {
    const std::lock_guard lock(mutex_);
    std::vector<PutOff>& all = operations_[target];
    all.push_back(std::move(operation));
    some_.store(operations_.size(), std::memory_order_release);
    return all.size();
}

bool Queue::holds(std::uint32_t target) const {
    const std::lock_guard lock(mutex_);
    return operations_.contains(target);
}

// All that there are; with none left, the target goes.
std::vector<PutOff> Queue::take(std::uint32_t target) {
    const std::lock_guard lock(mutex_);
    const auto found = operations_.find(target);
    if (found == operations_.end()) return {};
    std::vector<PutOff> taken = std::exchange(found->second, {});
    if (taken.empty()) operations_.erase(found);
    some_.store(operations_.size(), std::memory_order_release);
    return taken;
}

void Queue::discard(std::uint32_t target) {
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
