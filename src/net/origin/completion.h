// The end of one operation with a request form (MPI_Rget and the like): the request completes with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/status.h"

namespace osc::net {

class Stream;

/// Counts the parts in which an operation travels, as far as they use this process's memory. Thread-safe: the network's
/// handlers end parts.
class Completion {
  public:
    /// One more part is in flight. The constructor counts the first part, which is the call that issues the operation.
    void begin() { parts_.fetch_add(1, std::memory_order_relaxed); }
    void end(Status status) {
        if (status != Status::Done) status_.store(status, std::memory_order_relaxed);
        // seq_cst, like the waiter's load: the network rings the bell after this.
        parts_.fetch_sub(1, std::memory_order_seq_cst);
    }
    /// The connection has ended as `why` says, and the provider does not end its transfers.
    void give_up(Status why) { given_up_.store(why, std::memory_order_seq_cst); }

    bool ended() const {
        return parts_.load(std::memory_order_seq_cst) == 0 || given_up_.load(std::memory_order_seq_cst) != Status::Done;
    }
    /// Valid when ended() is true.
    Status status() const {
        if (parts_.load(std::memory_order_seq_cst) != 0) return given_up_.load(std::memory_order_relaxed);
        return status_.load(std::memory_order_relaxed);
    }

  private:
    std::atomic<std::uint32_t> parts_{1};
    std::atomic<Status> status_{Status::Done};
    std::atomic<Status> given_up_{Status::Done};
};

inline constexpr std::uint32_t kNoNotification = ~std::uint32_t{0};  // an operation that notifies no counter

/// Each part in flight owns it too, so it may outlive the request.
using SharedCompletion = std::shared_ptr<Completion>;

/// An operation that may still be in flight.
struct PendingOp {
    SharedCompletion completion;  // null: all of it has ended
    Stream* stream = nullptr;
    std::uint32_t target = 0;
};

}  // namespace osc::net
