// Finds the region of each piece.
#include "transport/dynamic.h"

#include <algorithm>
#include <utility>

#include "stats/counters.h"
#include "transport/mixed.h"

namespace osc {

// Displacements stay addresses of the target, so that an element has the same stripe on every path.
template <class F>
void Dynamic::by_load_and_store(const Mapped& mapped, std::int64_t disp, std::size_t bytes, F&& f) {
    const auto first = static_cast<std::int64_t>(mapped.first);
    const auto end = static_cast<std::int64_t>(mapped.end);
    if (disp >= first && disp + static_cast<std::int64_t>(bytes) <= end) {
        stats::t_path = stats::DataPath::LoadStore;
        shm::Direct whole(mapped.here, stripes_, first);
        f(static_cast<Transport&>(whole), disp, bytes);
        fault_ = whole.finish();
        return;
    }
    Mixed parts(mapped.here, first, end, stripes_, unmapped_);
    f(static_cast<Transport&>(parts), disp, bytes);
    fault_ = parts.finish_mapped();
}

template <class F>
void Dynamic::split(std::int64_t disp, std::size_t bytes, F&& f) {
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

void Dynamic::put(std::int64_t disp, const void* from, std::size_t bytes) {
    const auto* data = static_cast<const std::byte*>(from);
    split(disp, bytes, [&](Transport& to, std::int64_t at, std::size_t part) {
        to.put(at, data, part);
        data += part;
    });
}

void Dynamic::get(std::int64_t disp, void* to, std::size_t bytes) {
    auto* data = static_cast<std::byte*>(to);
    split(disp, bytes, [&](Transport& from, std::int64_t at, std::size_t part) {
        from.get(at, data, part);
        data += part;
    });
}

void Dynamic::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
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

void Dynamic::compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                               void* result) {
    split(disp, how.width, [&](Transport& to, std::int64_t at, std::size_t part) {
        if (part != how.width) {
            fault_ = base::fail(Fault::Range, "an element lies across the end of an attached region");
            return;
        }
        to.compare_and_swap(how, at, origin, compare, result);
    });
}

Fault Dynamic::finish() {
    const Fault unmapped = unmapped_.finish();
    return fault_ != Fault::None ? fault_ : unmapped;
}

}  // namespace osc
