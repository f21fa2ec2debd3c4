// Splits operations at the edges of the mapped part.
#include "reach/mixed.h"

#include <algorithm>

#include "stats/counters.h"

namespace osc::reach {

Outcome Mixed::execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) {
    const shm::ControlBlock& block = target.control();
    Private::Carrier edges(edges_, target, block.base);
    if (edges.fault() != Fault::None) return {edges.fault()};
    const auto first = static_cast<std::int64_t>(block.shared_first);
    const auto end = static_cast<std::int64_t>(block.shared_end);
    MixedTransport transport(target.base + first, first, end, edges_.stripes(target), edges.transport());
    return edges.outcome(op::execute(call, what, start, transport));
}

bool Mixed::find(const Target& target, std::int64_t disp, std::uint64_t bytes, Place& place) const {
    const shm::ControlBlock& block = target.control();
    return edges_.find(target, disp, bytes, place) &&
           (place.offset >= block.shared_end || place.offset + bytes <= block.shared_first);
}

// Calls f(transport, disp, units) for each part of `units` units of `unit` bytes from `disp` on. A unit across an edge
// goes by the other transport as a whole.
template <class F>
void MixedTransport::split(std::int64_t disp, std::size_t units, std::size_t unit, F&& f) {
    const auto width = static_cast<std::int64_t>(unit);
    const auto within = [&](std::int64_t bytes) {
        return std::min(units, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0) / width));
    };
    const auto step = [&](Transport& by, std::size_t part) {
        if (part == 0) return;
        f(by, disp, part);
        disp += static_cast<std::int64_t>(part) * width;
        units -= part;
    };
    step(edges_, within(first_ - disp + width - 1));
    if (const std::size_t inner = within(end_ - disp); inner > 0) {
        stats::t_path = stats::DataPath::LoadStore;
        step(mapped_, inner);
    }
    step(edges_, units);
}

void MixedTransport::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    if (is_mapped(disp, bytes)) {
        stats::t_path = stats::DataPath::LoadStore;
        return mapped_.move(write, disp, memory, bytes);
    }
    auto* data = static_cast<std::byte*>(memory);
    split(disp, bytes, 1, [&](Transport& by, std::int64_t at, std::size_t part) {
        by.move(write, at, data, part);
        data += part;
    });
}

void MixedTransport::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(origin);
    auto* back = static_cast<std::byte*>(result);
    split(disp, count, how.width, [&](Transport& to, std::int64_t at, std::size_t part) {
        to.update(how, at, from, back, part);
        if (from != nullptr) from += part * how.width;
        if (back != nullptr) back += part * how.width;
    });
}

Fault MixedTransport::finish() {
    const Fault edges = edges_.finish();
    const Fault mapped = mapped_.finish();
    return edges != Fault::None ? edges : mapped;
}

}  // namespace osc::reach
