// What other nodes have sent this process about the fences and barriers of one window. The polling thread fills it; the
// application thread that waits for it empties it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "sync/remote_sync.h"

namespace osc::net {

/// Thread-safe.
class Arrivals {
  public:
    /// A part of what the next arrival of `sender` brings; false if it cannot be meant so: there are only `processes`.
    bool count(std::uint32_t sender, std::uint64_t target, std::uint32_t closes, std::uint32_t processes);
    void arrived(std::uint32_t sender, std::uint64_t barrier, std::uint32_t round, std::uint32_t wants);
    /// Takes note of the arrival away, and adds what it has brought; false if it has not come.
    bool take(std::uint64_t barrier, std::uint32_t round, sync::FenceSummary& news);

    /// A process of another node has ended its operations of a fence's epoch here, and they are done.
    void closed() { closed_.fetch_add(1, std::memory_order_seq_cst); }
    /// How often that was, since the window was made.
    std::uint64_t closes() const { return closed_.load(std::memory_order_seq_cst); }

    /// Whether this process executes requests of the epoch behind this fence. If not, notes that a request waits.
    bool is_open(std::uint64_t fence);
    /// Executes them from now on; true if a request may wait.
    bool open(std::uint64_t fence);

    /// `target` calls MPI_Win_test, so this process's MPI_Win_complete awaits its reply from now on.
    void tested_by(std::uint32_t target);
    bool is_tested_by(std::uint32_t target);

  private:
    struct Arrival {
        std::uint64_t barrier;
        std::uint32_t round;
        sync::FenceSummary news;
    };
    std::mutex mutex_;
    std::map<std::uint32_t, sync::FenceSummary> parts_;  // by senders whose arrival has not come yet
    std::vector<Arrival> came_;
    std::atomic<std::uint64_t> closed_{0};
    std::atomic<std::uint64_t> open_{0};
    std::atomic<bool> awaited_{false};
    std::set<std::uint32_t> testers_;  // under mutex_
    std::atomic<bool> has_testers_{false};
};

}  // namespace osc::net
