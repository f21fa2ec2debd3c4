// Operations that are put off until their epoch's synchronisation has them done, by target and in order. Datatypes may
// be freed meanwhile; buffers are the user's until the operation is complete (MPI 4.1 section 12.3).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "op/call.h"
#include "op/type_info.h"

namespace osc::op {

/// A call with what keeps its layouts.
struct PutOff {
    Call call;
    TypeRef origin, result, target;
};

/// Thread-safe.
class Queue {
  public:
    /// Operations for one target: the call that queues the last of so many executes all of them.
    static constexpr std::size_t kMost = 1024;

    /// How many are put off for the target with this one.
    std::size_t add(std::uint32_t target, PutOff&& operation);
    bool has(std::uint32_t target) const { return some_.load(std::memory_order_acquire) != 0 && holds(target); }
    /// Does all of a target, in the order of their calls: each(operation). One thread at a time; until the last has
    /// been done the target has some, so that nobody overtakes it.
    template <class Each>
    void empty(std::uint32_t target, Each&& each);
    /// Forgets all of a target, undone.
    void discard(std::uint32_t target);
    /// Targets that have some, in ascending order.
    std::vector<std::uint32_t> targets() const;

  private:
    bool holds(std::uint32_t target) const;
    std::vector<PutOff> take(std::uint32_t target);
    std::mutex emptying_;
    std::atomic<std::size_t> some_{0};  // targets
    mutable std::mutex mutex_;
    std::map<std::uint32_t, std::vector<PutOff>> operations_;
};

template <class Each>
void Queue::empty(std::uint32_t target, Each&& each) {
    if (!has(target)) return;
    const std::lock_guard lock(emptying_);
    for (;;) {
        const std::vector<PutOff> some = take(target);
        if (some.empty()) return;
        for (const PutOff& operation : some)
            each(operation);
    }
}

}  // namespace osc::op
