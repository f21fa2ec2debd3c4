// Queries to a target: the description of the window, and regions of a dynamic window. The target's network thread
// answers them at once, ahead of all requests that wait there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "net/network_stack.h"

namespace osc::net {

class Stream;

/// Under the stream's mutex, which waits release.
class TargetQueries {
  public:
    explicit TargetQueries(Stream& stream) : stream_(stream) {}

    /// The right to ask(), of one thread at a time; waits for it.
    class Turn {
      public:
        explicit Turn(TargetQueries& queries);
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        /// Another thread has asked meanwhile, perhaps the same.
        bool waited() const { return waited_; }

      private:
        TargetQueries& queries_;
        bool waited_ = false;
    };
    /// Sends one record and waits for its reply, which goes to `to`. With a Turn of the caller's.
    Fault ask(const Record& record, void* to);
    /// The target's description; asked for once.
    Fault describe(Description& description);
    /// The number of the target's notification counters now.
    Fault count_counters(std::uint32_t& count);
    /// The description if it is known; else null.
    const Description* described() const { return described_ ? &description_ : nullptr; }
    /// The description if it is known and the target's memory is exposed; else null.
    const Description* exposed() const { return described_ && description_.exposed != 0 ? &description_ : nullptr; }

  private:
    struct Reply final : ReplyHandler {
        std::atomic<bool> open{false};
        Status status = Status::Done;
        void* to = nullptr;
        std::size_t bytes = 0;
        void answered(Status status, const std::byte* data, std::size_t bytes) override;
    };

    Stream& stream_;
    bool described_ = false;
    Description description_{};
    std::atomic<bool> taken_{false};  // a Turn exists
    Reply reply_;
};

}  // namespace osc::net
