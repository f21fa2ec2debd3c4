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
        used_edges_ |= &by == &edges_;
        f(by, disp, part);
        disp += static_cast<std::int64_t>(part) * width;
        units -= part;
    };
    step(edges_, within(first_ - disp + width - 1));
    step(mapped_, within(end_ - disp));
    step(edges_, units);
}

void MixedTransport::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    if (is_mapped(disp, bytes)) return mapped_.move(write, disp, memory, bytes);
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
