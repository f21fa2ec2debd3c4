// The first fault of a stream, kept until a call of the program returns it.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "base/fault.h"
#include "net/status.h"

namespace osc::net {

/// Thread-safe.
class FirstFault {
  public:
    /// `target`: the rank that texts name.
    explicit FirstFault(std::uint32_t target) : target_(target) {}

    void note(Status status) {
        if (status == Status::Done) return;
        const Fault fault = net::fault_of(status, target_);
        const std::lock_guard lock(mutex_);
        if (fault_ != Fault::None) return;
        fault_ = fault;
        text_ = base::fault_text();
    }
    Fault take() {
        const std::lock_guard lock(mutex_);
        if (fault_ == Fault::None) return Fault::None;
        return base::fail(std::exchange(fault_, Fault::None), "%s", text_.c_str());
    }

  private:
    const std::uint32_t target_;
    std::mutex mutex_;
    Fault fault_ = Fault::None;
    std::string text_;
};

}  // namespace osc::net
