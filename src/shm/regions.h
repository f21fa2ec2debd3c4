// The region table of a dynamic window. The owner writes it on attach and detach; other processes read it one-sidedly.
//
// The owner keeps the regions sorted and publishes them as an array in its arena, under a version number that is odd
// while it changes (a sequence lock). A reader keeps a copy with its version and compares versions before every use, so
// it refuses a detached region at once, and attach involves no other process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/fault.h"
#include "base/function_ref.h"
#include "shm/arena.h"
#include "shm/control.h"

namespace osc::shm {

/// The owner's side. Thread-safe.
class RegionTable {
  public:
    explicit RegionTable(ControlBlock& block) : block_(block) {}
    ~RegionTable();
    RegionTable(const RegionTable&) = delete;
    RegionTable& operator=(const RegionTable&) = delete;

    /// Adds [base, base + size), of which other processes can map `shared`; Fault::Attach if it overlaps an attached
    /// region, Fault::AttachRefused if there is no memory.
    Fault attach(const void* base, std::size_t size, const SharedPart& shared = {});
    /// Removes the region that starts at `base`; Fault::Attach if there is none. `removed`: called after a region that
    /// is not empty was removed, before the table's mutex is released.
    Fault detach(const void* base, base::FunctionRef<void()> removed);
    Fault detach(const void* base) {
        return detach(base, [] {});
    }

    /// Calls f(regions), sorted by address, while no thread attaches or detaches.
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
    std::multiset<const void*> empty_;  // attached with size zero; not published
    std::uint64_t numbers_ = 0;         // given to regions
    ArenaBlock published_;
};

/// A reader's copy of a target's regions, sorted by address, and the places at which this process has mapped their
/// shared parts. Thread-safe; the list does not change.
class AttachedRegions {
  public:
    /// A copy of the table's `version`. Takes over the mappings of the regions that `before`, an earlier copy or null,
    /// has too.
    AttachedRegions(std::uint64_t version, std::vector<Region> list, const AttachedRegions* before);

    std::uint64_t version() const { return version_; }
    const std::vector<Region>& list() const { return list_; }
    /// The address at which `region`, one of the list, has the first byte of its shared part; null if the part is not
    /// mapped. The fourth call for a region of `arena` maps the part, the first one in the pool or if `at_once`, until
    /// all copies that have the region are gone: a mapping costs more than few operations. kMostMapped of them at most
    /// exist outside of pools.
    std::byte* locate(const Region& region, PeerArena& arena, bool at_once) const;

    static constexpr std::uint32_t kMostMapped = 4096;

  private:
    class Mapping;
    struct Slot {
        std::atomic<std::uint32_t> uses{0};
        std::atomic<std::byte*> address{nullptr};
        std::shared_ptr<const Mapping> mapping;
    };
    std::byte* map(const Region& region, Slot& slot, PeerArena& arena) const;

    const std::uint64_t version_;
    std::vector<Region> list_;
    mutable std::mutex mutex_;  // of all mappings
    mutable std::vector<Slot> slots_;
};

/// The region of a dynamic window's target that an operation of this process has reached last, by load and store or by
/// process_vm_*, so that the next one needs no copy of the region table.
///
/// Threads read it without a lock. find() returns a place only if the target's table has the version at which the place
/// was noted. A copy of the table that is made later takes over the mapping of each region that it still has, so the
/// place stays mapped until the region is detached, which must wait for the operations on it (MPI 4.1 section 12.2.4).
/// The order of the reads matters: another thread may map a region by an old copy after a third one has made a newer,
/// and that mapping ends with the old copy. So the table's version is read after the noted one: it is newer then.
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
    void forget() { note(kNone, 0, 0, nullptr); }

  private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};  // odd, as the version of no complete table
    std::atomic<std::uint64_t> notes_{0};
    std::atomic<std::uint64_t> version_{kNone};
    std::atomic<std::uint64_t> first_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::byte*> here_{nullptr};
    std::mutex mutex_;
};

/// A reader's view of a target's regions.
class RegionView {
  public:
    /// Reads `count` regions at `offset` of the owner's arena; nothing if that cannot be mapped.
    using Read = base::FunctionRef<std::optional<std::vector<Region>>(std::uint64_t offset, std::uint64_t count)>;

    /// Whether the owner has died; asked only after a long wait.
    using Dead = base::FunctionRef<bool()>;

    /// The current regions. Reads the table again only if its version has changed, and waits while the owner changes
    /// it. Null if the table cannot be read, or if the owner has died in the middle of a change; the next call tries
    /// again.
    std::shared_ptr<const AttachedRegions> current(ControlBlock& block, Read read, Dead dead);

    /// The target has died: what is mapped here of its private memory is gone.
    void forget();

    LastRegion last;
    /// The last region of which no byte is mapped here and that process_vm_* reaches. Its "place" is its address in the
    /// owner's process.
    LastRegion last_unmapped;

  private:
    std::mutex mutex_;
    std::uint64_t version_ = ~std::uint64_t{0};
    std::shared_ptr<const AttachedRegions> regions_;
};

/// The region that contains `address`, or null.
const Region* find_region(const std::vector<Region>& regions, std::uint64_t address);

}  // namespace osc::shm
