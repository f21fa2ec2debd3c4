// The windows that this process's agent serves, and the execution of messages on them. Every message is checked in full
// before it touches memory (invariant I7), and updates take the same stripe locks as every other path (invariant I1).
// No thread, no queue and no MPI here.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "agent/message.h"
#include "op/transport.h"
#include "transport/direct/locked.h"
#include "transport/shm/regions.h"

namespace osc::agent {

/// One window as its owner's agent needs it. All of it outlives the registration.
struct Served {
    std::byte* base = nullptr;            // displacement 0; null in dynamic windows
    std::uint64_t size = 0;               // bytes
    shm::RegionTable* regions = nullptr;  // dynamic windows: what is attached
    shm::ControlBlock* block = nullptr;   // of the owner: its stripe locks
    std::uint32_t rank = 0;               // of the owner in the window's group
    sync::Liveness* liveness = nullptr;
};

/// Thread-safe. A message is executed under the lock that removal takes, so that no message is at work in a window
/// once `remove` has returned.
class ServedWindows {
  public:
    /// The window's number: counts up, with random low bits, and is never given twice. Not 0.
    std::uint64_t add(const Served& window);
    void remove(std::uint64_t number);

    /// Executes one message; `payload` has `capacity` bytes, both multiples of 16, and receives the answer. The header
    /// is the caller's own copy: nobody else changes it meanwhile.
    Status execute(const Header& header, std::byte* payload, std::size_t capacity);

    /// Messages answered so, since the start.
    std::uint64_t answered(Status status) const {
        return answered_[static_cast<std::size_t>(status)].load(std::memory_order_relaxed);
    }

  private:
    Status run(const Header& header, std::byte* payload, std::size_t capacity);
    Status perform(const Served& window, const Header& header, std::byte* payload, const Update& how);

    std::mutex mutex_;
    std::map<std::uint64_t, Served> windows_;
    std::uint64_t count_ = 0;
    // The checked copy: the original lies in memory that its sender may still change.
    std::array<Part, kMostParts> parts_;
    std::array<std::atomic<std::uint64_t>, kStatuses> answered_{};
};

}  // namespace osc::agent
