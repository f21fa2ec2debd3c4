// Splits operations at the edges of the mapped part.
#include "reach/mixed.h"

#include <algorithm>

namespace osc::reach {

Outcome Mixed::execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) {
    const shm::ControlBlock& block = target.control();
    Private::Carrier edges(edges_, target, block.base);
    if (edges.fault() != Fault::None) return {edges.fault()};
    const auto first = static_cast<std::int64_t>(block.shared_first);
    const auto end = static_cast<std::int64_t>(block.shared_end);
    MixedTransport transport(target.base + first, first, end, origin_.stripes(target.control()), edges.transport());
    const Fault fault = op::execute(call, what, start, transport);
    return transport.used_edges() ? edges.outcome(fault) : Outcome{.fault = fault};
}

Outcome Mixed::simple(Target& target, const op::Simple& what, bool prepared) {
    const Outcome outcome = pages_.simple(target, what, prepared);
    if (outcome.served) return outcome;
    const shm::ControlBlock& block = target.control();
    return edges_.simple_outside(target, what, prepared, block.shared_first, block.shared_end);
}

// A unit across an edge goes by the other transport as a whole.
void MixedTransport::split(std::int64_t disp, std::size_t units, std::size_t unit, Part part) {
    const auto width = static_cast<std::int64_t>(unit);
    const auto within = [&](std::int64_t bytes) {
        return std::min(units, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0) / width));
    };
    const auto step = [&](Transport& by, std::size_t count) {
        if (count == 0) return;
        used_edges_ |= &by == &edges_;
        part(by, disp, count);
        disp += static_cast<std::int64_t>(count) * width;
        units -= count;
    };
    step(edges_, within(first_ - disp + width - 1));
    step(mapped_, within(end_ - disp));
    step(edges_, units);
}

void SplitTransport::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    auto* data = static_cast<std::byte*>(memory);
    split(disp, bytes, 1, [&](Transport& by, std::int64_t at, std::size_t units) {
        by.move(write, at, data, units);
        data += units;
    });
}

void SplitTransport::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(origin);
    auto* back = static_cast<std::byte*>(result);
    split(disp, count, how.width, [&](Transport& by, std::int64_t at, std::size_t units) {
        by.update(how, at, from, back, units);
        if (from != nullptr) from += units * how.width;
        if (back != nullptr) back += units * how.width;
    });
}

Fault MixedTransport::finish() {
    const Fault edges = edges_.finish();
    const Fault mapped = mapped_.finish();
    return edges != Fault::None ? edges : mapped;
}

}  // namespace osc::reach
