// The region table of a dynamic window: written by its owner on attach and detach, read one-sidedly by everybody.
//
// The owner keeps the regions sorted and publishes them as an array in its arena, under a version number that is odd
// while it changes (a sequence lock). A reader keeps a copy with its version and compares versions before every use,
// so a region that was detached is refused from then on, and attaching needs no one else.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "diag/fault.h"
#include "transport/shm/arena.h"
#include "transport/shm/control.h"

namespace osc::shm {

/// The owner's side. Thread-safe.
class RegionTable {
  public:
    explicit RegionTable(ControlBlock& block) : block_(block) {}
    ~RegionTable();
    RegionTable(const RegionTable&) = delete;
    RegionTable& operator=(const RegionTable&) = delete;

    /// Adds [base, base + size); Fault::Attach if it overlaps an attached region or there is no memory.
    Fault attach(const void* base, std::size_t size);
    /// Removes the region that starts at `base`; Fault::Attach if there is none. `gone`: called when a region that
    /// exposed something has left, before anything else can happen to the table.
    Fault detach(const void* base, const std::function<void()>& gone = {});

    /// f(regions), sorted by address, which nobody attaches or detaches meanwhile.
    template <class F>
    auto while_attached(F&& f) {
        const std::lock_guard lock(mutex_);
        return f(static_cast<const std::vector<Region>&>(regions_));
    }

  private:
    Fault publish();

    ControlBlock& block_;
    std::mutex mutex_;
    std::vector<Region> regions_;
    std::multiset<const void*> empty_;  // attached with size zero: never published
    Piece published_;
};

/// A reader's copy of a target's regions.
class RegionView {
  public:
    /// Reads `count` regions at `offset` of the owner's arena; nothing if that cannot be mapped.
    using Read = std::function<std::optional<std::vector<Region>>(std::uint64_t offset, std::uint64_t count)>;

    /// The regions as they are now: sorted by address. Reads the table again only if its version moved. Null if it
    /// cannot be read; the next call tries again.
    std::shared_ptr<const std::vector<Region>> current(ControlBlock& block, const Read& read);

  private:
    std::mutex mutex_;
    std::uint64_t version_ = ~std::uint64_t{0};
    std::shared_ptr<const std::vector<Region>> regions_;
};

/// The region that holds `address`, or null.
const Region* find_region(const std::vector<Region>& regions, std::uint64_t address);

}  // namespace osc::shm
