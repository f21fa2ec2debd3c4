// The first fault of a stream, kept until a call of the program returns it.
#pragma once

#include <mutex>

#include "base/first_fault.h"
#include "net/status.h"

namespace osc::net {

/// Thread-safe.
class StreamFault {
  public:
    /// `target`: the rank that texts name.
    explicit StreamFault(std::uint32_t target) : target_(target) {}

    void note(Status status) {
        if (status == Status::Done) return;
        const Fault fault = net::fault_of(status, target_);
        const std::lock_guard lock(mutex_);
        first_.note(fault);
    }
    Fault take() {
        const std::lock_guard lock(mutex_);
        return first_.take();
    }

  private:
    const std::uint32_t target_;
    std::mutex mutex_;
    base::FirstFault first_;
};

}  // namespace osc::net
