// The windows that this process's agent serves, and the execution of messages of the node on them. No thread, no queue
// and no MPI here.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "base/random.h"
#include "net/target/executor.h"

namespace osc::net {

/// Thread-safe. execute() and remove() take the same lock: after `remove` has returned, no message works on the window.
class AgentService {
  public:
    /// The window's number, above random low bits of the process; never given twice, not 0.
    std::uint64_t add(const ExposedWindow& window);
    void remove(std::uint64_t number);

    /// Executes the `bytes` of records at `body`, all or none. `body` has `capacity` bytes, and its sender may change
    /// it meanwhile. The reply's data goes to `reply`, or behind the records if that is empty.
    Status execute(std::uint64_t number, std::byte* body, std::size_t bytes, std::size_t capacity,
                   std::span<std::byte> reply = {});

    /// Messages with this reply, since the start.
    std::uint64_t replies(Status status) const {
        return replies_[static_cast<std::size_t>(status)].load(std::memory_order_relaxed);
    }

  private:
    Status run(std::uint64_t number, const std::byte* body, std::size_t bytes, std::span<std::byte> reply);

    std::mutex mutex_;
    std::map<std::uint64_t, ExposedWindow> windows_;
    std::uint64_t count_ = 0;
    const std::uint64_t secret_ = base::random64();  // of this process: numbers of others hardly match its windows
    std::vector<CheckedRecord> records_;             // of the message that is being executed
    ShapeCache shapes_;
    std::array<std::atomic<std::uint64_t>, kStatuses> replies_{};
};

}  // namespace osc::net
