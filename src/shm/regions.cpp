// Attach, detach, and reads of another process's table.
// Build: osc_core
#include "shm/regions.h"

#include <algorithm>
#include <cstring>

#include "shm/section_wait.h"

namespace osc::shm {

RegionTable::~RegionTable() {
    if (published_) Arena::mine().release(published_.address);
}

Fault RegionTable::publish() {
    const std::size_t bytes = regions_.size() * sizeof(Region);
    ArenaBlock fresh;
    if (bytes > published_.bytes) {
        fresh = Arena::mine().allocate(std::max<std::size_t>(bytes * 2, 256), 64, false);
        if (!fresh)
            return base::fail(Fault::AttachRefused, "no shared memory for a table of %zu regions", regions_.size());
    }
    const std::uint64_t version = block_.regions_version.load(std::memory_order_relaxed);
    block_.regions_version.store(version + 1, std::memory_order_seq_cst);
    const ArenaBlock old = fresh ? published_ : ArenaBlock{};
    if (fresh) published_ = fresh;
    const auto* words = reinterpret_cast<const std::uint64_t*>(regions_.data());
    auto* out = reinterpret_cast<std::uint64_t*>(published_.address);
    // Release stores, which readers acquire: a reader that sees one of these words sees the odd version too. Relaxed
    // stores could become visible before it.
    for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i)
        std::atomic_ref<std::uint64_t>(out[i]).store(words[i], std::memory_order_release);
    block_.regions_offset.store(published_.offset, std::memory_order_release);
    block_.regions_count.store(regions_.size(), std::memory_order_release);
    block_.regions_version.store(version + 2, std::memory_order_seq_cst);
    if (old) Arena::mine().release(old.address);
    return Fault::None;
}

Fault RegionTable::attach(const void* base, std::size_t size, const SharedPart& shared) {
    const std::lock_guard lock(mutex_);
    if (size == 0) {  // exposes nothing, but may be detached
        empty_.insert(base);
        return Fault::None;
    }
    const auto start = reinterpret_cast<std::uint64_t>(base);
    const auto after = std::ranges::lower_bound(regions_, start, {}, &Region::base);
    if ((after != regions_.end() && after->base < start + size) ||
        (after != regions_.begin() && std::prev(after)->base + std::prev(after)->size > start))
        return base::fail(Fault::Attach, "the memory at %p overlaps a region that is attached already", base);
    const auto at = regions_.insert(after, Region{start, size, shared, shared.is_attached() ? ++numbers_ : 0});
    const Fault fault = publish();
    if (fault != Fault::None) regions_.erase(at);
    return fault;
}

Fault RegionTable::detach(const void* base, base::FunctionRef<void()> removed) {
    const std::lock_guard lock(mutex_);
    const auto start = reinterpret_cast<std::uint64_t>(base);
    const auto found = std::ranges::lower_bound(regions_, start, {}, &Region::base);
    if (found != regions_.end() && found->base == start) {
        regions_.erase(found);
        const Fault fault = publish();
        removed();
        return fault;
    }
    const auto empty = empty_.find(base);
    if (empty == empty_.end()) return base::fail(Fault::Attach, "no region that starts at %p is attached", base);
    empty_.erase(empty);
    return Fault::None;
}

// Whether all processes map the part already.
static bool is_pooled(const PeerArena& arena, const SharedPart& part) {
    return part.offset + part.bytes() <= arena.address().pool_bytes;
}

// Unmaps in its destructor.
class AttachedRegions::Mapping {
  public:
    Mapping(PeerArena& arena, const SharedPart& part) : arena_(arena), part_(part) {
        pooled_ = is_pooled(arena, part);
        if (!pooled_ && s_mapped.fetch_add(1) >= kMostMapped) return;
        address_ = arena.map(part.offset, part.bytes());
    }
    ~Mapping() {
        if (address_ != nullptr) arena_.unmap(part_.offset, address_, part_.bytes());
        if (!pooled_) s_mapped.fetch_sub(1);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    std::byte* address() const { return address_; }

  private:
    static inline std::atomic<std::uint32_t> s_mapped{0};  // outside of the pools
    PeerArena& arena_;
    SharedPart part_;
    std::byte* address_ = nullptr;
    bool pooled_ = false;
};

AttachedRegions::AttachedRegions(std::uint64_t version, std::vector<Region> list, const AttachedRegions* before)
    : version_(version), list_(std::move(list)), slots_(list_.size()) {
    if (before == nullptr) return;
    const std::lock_guard lock(before->mutex_);
    const Region* old = before->list_.data();
    const Region* const end = old + before->list_.size();
    for (std::size_t i = 0; i < list_.size(); ++i) {
        while (old != end && old->base < list_[i].base)
            ++old;
        if (old == end || !(*old == list_[i])) continue;
        const Slot& slot = before->slots_[static_cast<std::size_t>(old - before->list_.data())];
        slots_[i].uses.store(slot.uses.load(std::memory_order_relaxed), std::memory_order_relaxed);
        if (slot.address.load(std::memory_order_relaxed) == nullptr) continue;  // what was refused is tried again
        slots_[i].mapping = slot.mapping;
        slots_[i].address.store(slot.address.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
}

std::byte* AttachedRegions::locate(const Region& region, PeerArena& arena, bool at_once) const {
    constexpr std::uint32_t kFew = 3;
    if (!region.shared) return nullptr;
    Slot& slot = slots_[static_cast<std::size_t>(&region - list_.data())];
    std::byte* const address = slot.address.load(std::memory_order_acquire);
    if (address != nullptr) return address;
    if (at_once || slot.uses.load(std::memory_order_relaxed) >= kFew || is_pooled(arena, region.shared))
        return map(region, slot, arena);
    slot.uses.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

std::byte* AttachedRegions::map(const Region& region, Slot& slot, PeerArena& arena) const {
    const std::lock_guard lock(mutex_);
    if (slot.mapping == nullptr) slot.mapping = std::make_shared<const Mapping>(arena, region.shared);
    slot.address.store(slot.mapping->address(), std::memory_order_release);
    return slot.mapping->address();
}

std::shared_ptr<const AttachedRegions> RegionView::current(ControlBlock& block, Read read, Dead dead) {
    const std::lock_guard lock(mutex_);
    for (SectionWait wait;;) {
        const std::uint64_t before = block.regions_version.load(std::memory_order_seq_cst);
        if (before == version_) return regions_;
        if ((before & 1) == 0) {
            const std::uint64_t offset = block.regions_offset.load(std::memory_order_acquire);
            const std::uint64_t count = block.regions_count.load(std::memory_order_acquire);
            // Offset and count belong together only if the version has not changed.
            if (block.regions_version.load(std::memory_order_seq_cst) == before) {
                std::optional<std::vector<Region>> copy = read(offset, count);
                if (block.regions_version.load(std::memory_order_seq_cst) == before) {
                    if (!copy) return nullptr;
                    version_ = before;
                    regions_ = std::make_shared<const AttachedRegions>(before, *std::move(copy), regions_.get());
                    return regions_;
                }
            }
        }
        // An owner that died while it changed the table leaves the version odd.
        if (wait.pause() && dead()) return nullptr;
    }
}

void RegionView::forget() {
    last.forget();
    const std::lock_guard lock(mutex_);
    version_ = ~std::uint64_t{0};
    regions_.reset();
}

const Region* find_region(const std::vector<Region>& regions, std::uint64_t address) {
    const auto after = std::ranges::upper_bound(regions, address, {}, &Region::base);
    if (after == regions.begin()) return nullptr;
    const Region& region = *std::prev(after);
    return address - region.base < region.size ? &region : nullptr;
}

}  // namespace osc::shm
