// Finds the region of each piece.
#include "reach/regions.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "local/direct.h"
#include "reach/mixed.h"

namespace osc::reach {
namespace {

// A part of the target's addresses, and the place at which its first byte is mapped here; null: not mapped.
struct MappedPart {
    std::byte* here = nullptr;
    std::uint64_t first = 0;
    std::uint64_t end = 0;
};

// The transport of one operation. Displacements are addresses of the target.
class RegionsTransport final : public SplitTransport {
  public:
    // `view` notes the places that are found. `by_agent`: `unmapped` leaves messages that no call awaits, so whether
    // memory is mapped must not change between operations: an update by load and store would overtake one of them.
    // `arena` of the target's process; null: the target is this process.
    RegionsTransport(std::shared_ptr<const shm::AttachedRegions> regions, shm::RegionView& view, bool by_agent,
                     shm::PeerArena* arena, shm::Stripes stripes, Transport& unmapped)
        : regions_(std::move(regions)),
          view_(view),
          by_agent_(by_agent),
          arena_(arena),
          stripes_(stripes),
          unmapped_(unmapped) {}

    Fault finish() override;
    // Whether some bytes lay in no mapped part.
    bool used_unmapped() const { return used_unmapped_; }

  private:
    MappedPart locate(const shm::Region& region);
    void split(std::int64_t disp, std::size_t units, std::size_t unit, Part part) override;
    void by_load_and_store(const MappedPart& mapped, std::int64_t disp, std::size_t units, std::size_t unit, Part part);

    const std::shared_ptr<const shm::AttachedRegions> regions_;
    shm::RegionView& view_;
    const bool by_agent_;
    shm::PeerArena* const arena_;
    const shm::Stripes stripes_;
    Transport& unmapped_;
    bool used_unmapped_ = false;
    Fault fault_ = Fault::None;
};

// The part of a region that is mapped here. Notes it for the next operation.
MappedPart RegionsTransport::locate(const shm::Region& region) {
    auto* const own = reinterpret_cast<std::byte*>(region.base);  // its address in the target's process
    MappedPart mapped{own, region.base, region.base + region.size};
    if (arena_ != nullptr)
        mapped = {regions_->locate(region, *arena_, by_agent_), region.shared.first, region.shared.end};
    if (mapped.here != nullptr)
        view_.last.note(regions_->version(), mapped.first, mapped.end, mapped.here);
    else if (!by_agent_ && !region.shared)
        view_.last_unmapped.note(regions_->version(), region.base, region.base + region.size, own);
    return mapped;
}

// Displacements stay addresses of the target, so that an element has the same stripe on every path.
void RegionsTransport::by_load_and_store(const MappedPart& mapped, std::int64_t disp, std::size_t units,
                                         std::size_t unit, Part part) {
    const auto first = static_cast<std::int64_t>(mapped.first);
    const auto end = static_cast<std::int64_t>(mapped.end);
    if (disp >= first && disp + static_cast<std::int64_t>(units * unit) <= end) {
        shm::Direct whole(mapped.here, stripes_, first);
        part(whole, disp, units);
        fault_ = whole.finish();
        return;
    }
    MixedTransport parts(mapped.here, first, end, stripes_, unmapped_);
    part(parts, disp, units);
    fault_ = parts.finish_mapped();
    used_unmapped_ |= parts.used_edges();
}

// Each part lies in one region. No unit may lie across the end of a region.
void RegionsTransport::split(std::int64_t disp, std::size_t units, std::size_t unit, Part part) {
    std::size_t bytes = units * unit;
    // A refused piece changes nothing, so the regions of all its bytes are found before the first byte moves.
    const shm::Region* first = nullptr;
    for (std::uint64_t seen = 0; seen < bytes;) {
        const std::uint64_t address = static_cast<std::uint64_t>(disp) + seen;
        const shm::Region* region = shm::find_region(regions_->list(), address);
        if (region == nullptr) {
            fault_ = base::fail(Fault::Range, "address 0x%llx of the target is in no region that is attached there",
                                static_cast<unsigned long long>(address));
            return;
        }
        if (seen == 0) first = region;
        seen += region->base + region->size - address;
        if (seen < bytes && seen % unit != 0) {
            fault_ = base::fail(Fault::Range, "an element lies across the end of an attached region");
            return;
        }
    }
    while (bytes > 0 && fault_ == Fault::None) {
        const auto address = static_cast<std::uint64_t>(disp);
        const shm::Region* region =
            first != nullptr ? std::exchange(first, nullptr) : shm::find_region(regions_->list(), address);
        const std::size_t length = std::min<std::size_t>(bytes, region->base + region->size - address);
        if (const MappedPart mapped = locate(*region); mapped.here != nullptr)
            by_load_and_store(mapped, disp, length / unit, unit, part);
        else
            part(unmapped_, disp, length / unit), used_unmapped_ = true;
        disp += static_cast<std::int64_t>(length);
        bytes -= length;
    }
}

Fault RegionsTransport::finish() {
    const Fault unmapped = unmapped_.finish();
    return fault_ != Fault::None ? fault_ : unmapped;
}

// Whether the target's operand lies in one region of which no byte is mapped here.
bool is_unshared(const shm::AttachedRegions& attached, const op::Call& call, std::int64_t start) {
    op::Bounds bounds;
    if (!call.target.layout->bounds(call.target.count, bounds)) return false;
    const auto first = static_cast<std::uint64_t>(start + bounds.lo);
    const shm::Region* const region = shm::find_region(attached.list(), first);
    return region != nullptr && !region->shared &&
           static_cast<std::uint64_t>(bounds.hi - bounds.lo) <= region->size - (first - region->base);
}

}  // namespace

std::optional<std::vector<shm::Region>> Regions::read(std::uint32_t rank, std::uint64_t offset,
                                                      std::uint64_t count) const {
    std::vector<shm::Region> copy(count);
    if (count == 0) return copy;
    const std::size_t length = count * sizeof(shm::Region);
    std::byte* table = unmapped_.node().map(rank, offset, length);
    if (table == nullptr) return std::nullopt;
    auto* from = reinterpret_cast<std::uint64_t*>(table);
    auto* to = reinterpret_cast<std::uint64_t*>(copy.data());
    for (std::size_t i = 0; i < length / sizeof(std::uint64_t); ++i)
        to[i] = std::atomic_ref<std::uint64_t>(from[i]).load(std::memory_order_acquire);
    unmapped_.node().unmap(rank, offset, table, length);
    // Where this process attaches nothing of the target, they are as regions that no process attaches.
    for (shm::Region& region : copy)
        if (region.shared.is_attached() && (rank == origin_.me || !unmapped_.node().arena_of(rank).attaches()))
            region.shared = {};
    return copy;
}

Outcome Regions::execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) {
    const std::uint32_t rank = target.rank;
    auto attached = target.regions->current(
        target.control(), [&](std::uint64_t offset, std::uint64_t count) { return read(rank, offset, count); },
        [&] { return !origin_.liveness.alive(rank); });
    if (attached == nullptr) {
        const Fault fault =
            base::fail(Fault::NoMem, "cannot map the table of the regions that rank %u has attached: %s", rank,
                       std::strerror(errno));
        return {.fault = not_mapped(origin_.liveness, rank, fault)};
    }
    // Pieces of one region of private memory are not looked up one by one.
    const bool whole = rank != origin_.me && !call.target.layout->data().one_piece(call.target.count) &&
                       is_unshared(*attached, call, start);
    Private::Carrier unmapped(unmapped_, target, 0, whole && unmapped_.prefers_message(target, call) ? &call : nullptr);
    if (whole && unmapped.fault() == Fault::None)
        return unmapped.outcome(op::execute(call, what, start, unmapped.transport()));
    if (unmapped.fault() != Fault::None) return unmapped.outcome(unmapped.fault());
    RegionsTransport transport(std::move(attached), *target.regions, unmapped.is_agent(),
                               rank == origin_.me ? nullptr : &unmapped_.node().arena_of(rank),
                               origin_.stripes(target.control()), unmapped.transport());
    const Fault fault = op::execute(call, what, start, transport);
    return transport.used_unmapped() ? unmapped.outcome(fault) : Outcome{.fault = fault};
}

// By the region that the last operation on the target has found. A mapped place may change with every new copy of the
// target's regions, so a batch does not keep it.
Outcome Regions::simple(Target& target, const op::Simple& what, bool prepared) {
    const auto address = static_cast<std::uint64_t>(what.disp);
    shm::RegionView& view = *target.regions;
    if (std::byte* const here = view.last.find(target.control(), address, what.bytes); here != nullptr)
        return load_or_store(target, what, here, address);
    if (view.last_unmapped.find(target.control(), address, what.bytes) == nullptr) return kNotServed;
    return unmapped_.simple_at(target, what, prepared, address, address);
}

}  // namespace osc::reach
