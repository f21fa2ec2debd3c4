// The queue of deferred operations, by target and in order, until their epoch's synchronisation performs them. The user
// may free datatypes meanwhile, but must not change the buffers (MPI 4.1 section 12.3).
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

/// A queued call with references to its datatypes.
struct Deferral {
    Call call;
    TypeRef origin, result, target;
};

/// Thread-safe.
class Queue {
  public:
    /// The most operations queued for one target: the call that queues the last one performs all of them.
    static constexpr std::size_t kMost = 1024;

    /// Queues an operation; returns the number now queued for the target.
    std::size_t add(std::uint32_t target, Deferral&& operation);
    bool has(std::uint32_t target) const { return some_.load(std::memory_order_acquire) != 0 && holds(target); }
    /// Calls each(operation) for all operations of a target, in the order of their calls. One thread at a time. has()
    /// stays true until the last one is done, so that another thread's operation cannot overtake them.
    template <class Each>
    void empty(std::uint32_t target, Each&& each);
    /// Drops all operations of a target.
    void discard(std::uint32_t target);
    /// Targets that have some, in ascending order.
    std::vector<std::uint32_t> targets() const;

  private:
    bool holds(std::uint32_t target) const;
    std::vector<Deferral> take(std::uint32_t target);
    std::mutex emptying_;
    std::atomic<std::size_t> some_{0};  // targets
    mutable std::mutex mutex_;
    std::map<std::uint32_t, std::vector<Deferral>> operations_;
};

template <class Each>
void Queue::empty(std::uint32_t target, Each&& each) {
    if (!has(target)) return;
    const std::lock_guard lock(emptying_);
    for (;;) {
        const std::vector<Deferral> some = take(target);
        if (some.empty()) return;
        for (const Deferral& operation : some)
            each(operation);
    }
}

}  // namespace osc::op
