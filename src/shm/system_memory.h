// The system's memory limits: how it accounts for pages (vm.overcommit_memory), the largest size that it can provide,
// and whether memory is short now.
//
// A memfd lies on the kernel's internal mount, which has no size limit. The kernel allocates its pages at the first
// touch, like those of malloc. If memory runs out then, the limit decides the outcome:
// - vm.overcommit_memory = 2: the commit limit is charged page by page at the fault, and a refusal is SIGBUS. Only
//   allocation in advance (fallocate) turns it into an error.
// - The machine's memory, or a control group's: the kernel kills a process, during fallocate as during a fault.
//   Allocation in advance gains nothing there; a size that cannot fit at all can be refused.
// - RLIMIT_FSIZE, RLIMIT_AS: ftruncate and mmap refuse; the fault does not look at either.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace osc::shm {

/// Not thread-safe: the arena's mutex protects it.
class SystemMemory {
  public:
    /// `root`: a prefix of /proc and /sys (tests put their own files there). Reads vm.overcommit_memory and the
    /// process's control groups, once.
    explicit SystemMemory(std::string root = {});

    /// Whether pages must be allocated when a piece is made, because a later refusal would be SIGBUS.
    bool allocates_early() const { return overcommit_ == kNever; }

    /// Whether addresses without pages cost nothing: the system has no commit limit, and the process no limit of its
    /// address space.
    bool spares_addresses() const;

    /// Whether the system cannot provide `bytes` more bytes. With vm.overcommit_memory = 0: more than the machine's
    /// memory and swap, or than a control group's limit. With 2: more than is available now. With 1: never.
    bool refuses(std::uint64_t bytes);

    /// Whether each of `processes` processes can touch `bytes` more bytes now without swapping: the machine's and the
    /// control groups' available memory, less a sixteenth of the machine's.
    bool has_for_each(std::uint64_t processes, std::uint64_t bytes) const;

    /// Whether less than a sixteenth of the machine's or of a control group's memory is available. Cached for 100 ms.
    bool is_short();

  private:
    static constexpr std::uint64_t kHeuristic = 0, kNever = 2;
    struct Group {
        std::string folder;
        bool unified;  // a control group of version 2
        std::uint64_t limit(const std::string& root) const;
        std::uint64_t used(const std::string& root) const;
    };
    std::uint64_t most() const;
    std::uint64_t available() const;
    bool measure_shortage() const;

    std::string root_;
    std::uint64_t overcommit_ = kHeuristic;
    std::vector<Group> groups_;  // those that have a limit
    std::uint64_t most_ = 0;
    bool short_ = false;
    std::chrono::steady_clock::time_point measured_{};
};

}  // namespace osc::shm
