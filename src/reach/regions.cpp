// Finds the region of each piece.
#include "reach/regions.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "reach/mixed.h"
#include "stats/counters.h"

namespace osc::reach {

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
    return copy;
}

Fault Regions::find_start(Peer& /*target*/, const op::Call& call, std::int64_t& start, bool& nothing) {
    op::Bounds touched;
    const Fault fault = op::find_extent(call, 1, start, touched);
    nothing = touched.lo == touched.hi;
    return fault;
}

Outcome Regions::execute(Peer& target, const op::Call& call, const Update& what, std::int64_t start) {
    const std::uint32_t rank = target.rank;
    auto attached = target.regions->current(
        target.control(), [&](std::uint64_t offset, std::uint64_t count) { return read(rank, offset, count); },
        [&] { return !liveness_.alive(rank); });
    const int error = errno;
    if (attached == nullptr && !liveness_.alive(rank))
        return {base::fail(Fault::Dead, "rank %u died, and its memory with it", rank)};
    if (attached == nullptr)
        return {base::fail(Fault::NoMem, "cannot map the table of the regions that rank %u has attached: %s", rank,
                           std::strerror(error))};
    const bool own = rank == me_;
    const bool agent = unmapped_.pid_of(rank) == 0;
    shm::PeerArena& arena = unmapped_.node().arena_of(rank);
    const shm::AttachedRegions& copy = *attached;
    const auto locate = [&](const shm::Region& region) {
        RegionsTransport::Mapped mapped{reinterpret_cast<std::byte*>(region.base), region.base,
                                        region.base + region.size};
        if (!own) mapped = {copy.locate(region, arena), region.shared.first, region.shared.end};
        if (mapped.here != nullptr)
            target.regions->last.note(copy.version(), mapped.first, mapped.end, mapped.here);
        else if (!agent && !region.shared)
            target.regions->last_unmapped.note(copy.version(), region.base, region.base + region.size,
                                               reinterpret_cast<std::byte*>(region.base));
        return mapped;
    };
    Private::Access unmapped(unmapped_, target, 0);
    if (unmapped.fault() != Fault::None) return {unmapped.fault()};
    // By reference: no allocation.
    RegionsTransport transport(std::move(attached), unmapped_.stripes(target), std::ref(locate), unmapped.transport());
    return unmapped.outcome(op::execute(call, what, start, transport));
}

std::byte* Regions::find_mapped(const Peer& target, std::uint64_t disp, std::uint64_t bytes) const {
    return target.regions->last.find(target.control(), disp, bytes);
}

bool Regions::find_unmapped(const Peer& target, std::int64_t disp, std::uint64_t bytes, Unmapped& place) const {
    place.address = place.offset = static_cast<std::uint64_t>(disp);
    if (target.regions->last_unmapped.find(target.control(), place.address, bytes) == nullptr) return false;
    place.pid = unmapped_.pid_of(target.rank);
    return place.pid != 0;
}

// Displacements stay addresses of the target, so that an element has the same stripe on every path.
template <class F>
void RegionsTransport::by_load_and_store(const Mapped& mapped, std::int64_t disp, std::size_t bytes, F&& f) {
    const auto first = static_cast<std::int64_t>(mapped.first);
    const auto end = static_cast<std::int64_t>(mapped.end);
    if (disp >= first && disp + static_cast<std::int64_t>(bytes) <= end) {
        stats::t_path = stats::DataPath::LoadStore;
        shm::Direct whole(mapped.here, stripes_, first);
        f(static_cast<Transport&>(whole), disp, bytes);
        fault_ = whole.finish();
        return;
    }
    MixedTransport parts(mapped.here, first, end, stripes_, unmapped_);
    f(static_cast<Transport&>(parts), disp, bytes);
    fault_ = parts.finish_mapped();
}

template <class F>
void RegionsTransport::split(std::int64_t disp, std::size_t bytes, F&& f) {
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
    }
    while (bytes > 0 && fault_ == Fault::None) {
        const auto address = static_cast<std::uint64_t>(disp);
        const shm::Region* region =
            first != nullptr ? std::exchange(first, nullptr) : shm::find_region(regions_->list(), address);
        const std::size_t part = std::min<std::size_t>(bytes, region->base + region->size - address);
        if (const Mapped mapped = locate_(*region); mapped.here != nullptr)
            by_load_and_store(mapped, disp, part, f);
        else
            f(unmapped_, disp, part);
        disp += static_cast<std::int64_t>(part);
        bytes -= part;
    }
}

void RegionsTransport::put(std::int64_t disp, const void* from, std::size_t bytes) {
    const auto* data = static_cast<const std::byte*>(from);
    split(disp, bytes, [&](Transport& to, std::int64_t at, std::size_t part) {
        to.put(at, data, part);
        data += part;
    });
}

void RegionsTransport::get(std::int64_t disp, void* to, std::size_t bytes) {
    auto* data = static_cast<std::byte*>(to);
    split(disp, bytes, [&](Transport& from, std::int64_t at, std::size_t part) {
        from.get(at, data, part);
        data += part;
    });
}

void RegionsTransport::update(const Update& how, std::int64_t disp, const void* origin, void* result,
                              std::size_t count) {
    const auto* from = static_cast<const std::byte*>(origin);
    auto* back = static_cast<std::byte*>(result);
    split(disp, count * how.width, [&](Transport& to, std::int64_t at, std::size_t part) {
        if (part % how.width != 0) {
            fault_ = base::fail(Fault::Range, "an element lies across the end of an attached region");
            return;
        }
        to.update(how, at, from, back, part / how.width);
        if (from != nullptr) from += part;
        if (back != nullptr) back += part;
    });
}

void RegionsTransport::compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                                        void* result) {
    split(disp, how.width, [&](Transport& to, std::int64_t at, std::size_t part) {
        if (part != how.width) {
            fault_ = base::fail(Fault::Range, "an element lies across the end of an attached region");
            return;
        }
        to.compare_and_swap(how, at, origin, compare, result);
    });
}

Fault RegionsTransport::finish() {
    const Fault unmapped = unmapped_.finish();
    return fault_ != Fault::None ? fault_ : unmapped;
}

}  // namespace osc::reach
