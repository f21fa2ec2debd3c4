// The region of a dynamic window's target that an operation of this process has reached last, by load and store or by
// process_vm_*, so that the next one needs no copy of the region table.
//
// Threads read it without a lock. find() returns a place only if the target's table has the version at which the place
// was noted. A copy of the table that is made later takes over the mapping of each region that it still has, so the
// place stays mapped until the region is detached, which must wait for the operations on it (MPI 4.1 section 12.2.4).
// The order of the reads matters: another thread may map a region by an old copy after a third one has made a newer,
// and that mapping ends with the old copy. So the table's version is read after the noted one: it is newer then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "shm/control.h"

namespace osc::shm {

class LastRegion {
  public:
    /// The place at which `bytes` bytes at `address` of the target are mapped here; null if the noted part does not
    /// contain them, or may have been detached.
    std::byte* find(const ControlBlock& target, std::uint64_t address, std::uint64_t bytes) const {
        const std::uint64_t note = notes_.load(std::memory_order_acquire);
        const std::uint64_t version = version_.load(std::memory_order_acquire);
        const std::uint64_t offset = address - first_.load(std::memory_order_acquire);
        const std::uint64_t room = bytes_.load(std::memory_order_acquire);
        std::byte* const here = here_.load(std::memory_order_acquire);
        if (!__builtin_expect(target.regions_version.load(std::memory_order_acquire) == version, 1)) return nullptr;
        if (!__builtin_expect(offset < room && bytes <= room - offset, 1)) return nullptr;
        return __builtin_expect(notes_.load(std::memory_order_relaxed) == note, 1) ? here + offset : nullptr;
    }

    /// Notes that addresses [first, end) of the target are mapped at `here`, according to the table of this version. A
    /// reader that sees any of the new values sees the new number of notes too, and one that sees that number before
    /// sees no version until the rest is written.
    void note(std::uint64_t version, std::uint64_t first, std::uint64_t end, std::byte* here) {
        if (version_.load(std::memory_order_relaxed) == version && first_.load(std::memory_order_relaxed) == first)
            return;
        const std::lock_guard lock(mutex_);
        version_.store(kNone, std::memory_order_release);
        notes_.fetch_add(1, std::memory_order_release);
        first_.store(first, std::memory_order_release);
        bytes_.store(end - first, std::memory_order_release);
        here_.store(here, std::memory_order_release);
        version_.store(version, std::memory_order_release);
    }

  private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};  // odd, as the version of no complete table
    std::atomic<std::uint64_t> notes_{0};
    std::atomic<std::uint64_t> version_{kNone};
    std::atomic<std::uint64_t> first_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::byte*> here_{nullptr};
    std::mutex mutex_;
};

}  // namespace osc::shm
