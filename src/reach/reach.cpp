// What the ways have in common: loads and stores, and the bounds of a target's memory.
// Build: -O3
#include "reach/reach.h"

#include <chrono>
#include <limits>
#include <thread>

#include "shm/wait.h"

namespace osc::reach {

namespace {

Fault start_in(Target& target, const op::Call& call, std::int64_t& start, bool& nothing) {
    if (target.way == Way::Regions) return find_address(call, start, nothing);
    return find_start(target.rank, target.control().size, target.unit, call, start, nothing);
}

}  // namespace

// Updates in one stripe. False if the elements lie in several, or if the stripe's holder died: perform() finds that
// again, and reports it.
bool LocalReach::update(Target& target, const op::Simple& what, std::byte* here, std::uint64_t offset) const {
    const std::size_t count = what.bytes / what.how->width;
    if (shm::count_in_chunk(offset, what.how->width, count) != count) return false;
    const auto at = static_cast<std::int64_t>(offset);
    shm::Direct memory(here, origin_.stripes(target.control()), at);
    memory.update(*what.how, at, what.origin, what.result, count);
    return memory.finish() == Fault::None;
}

Outcome LocalReach::perform(Target& target, const op::Call& call, const Update& what, const Extras& /*extras*/) {
    std::int64_t start = 0;
    bool nothing = false;
    const Fault fault = start_in(target, call, start, nothing);
    if (fault != Fault::None || nothing) return {.fault = fault, .path = path(target)};
    return execute(target, call, what, start);
}

Outcome LocalReach::admit(Target& target, const op::Call& call, const Update& /*what*/) {
    bool nothing = false;
    std::int64_t start = 0;
    const Fault fault = start_in(target, call, start, nothing);
    return {.fault = fault, .served = !nothing, .path = path(target)};
}

Fault find_start(std::uint32_t rank, std::uint64_t size, std::uint64_t unit, const op::Call& call, std::int64_t& start,
                 bool& nothing) {
    op::Bounds touched;
    if (const Fault fault = op::find_extent(call, unit, start, touched); fault != Fault::None) return fault;
    nothing = touched.lo == touched.hi;
    if (nothing || (touched.lo >= 0 && static_cast<std::uint64_t>(touched.hi) <= size)) return Fault::None;
    return base::fail(Fault::Range, "bytes [%lld, %lld) of rank %u, whose window has %llu bytes",
                      static_cast<long long>(touched.lo), static_cast<long long>(touched.hi), rank,
                      static_cast<unsigned long long>(size));
}

Fault not_mapped(sync::Liveness& liveness, std::uint32_t rank, Fault fault) {
    for (int waited = 0; waited < 100; ++waited) {
        if (!liveness.alive(rank)) return base::fail(Fault::Dead, "rank %u died, and its memory with it", rank);
        shm::poll_host();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return fault;
}

Fault find_address(const op::Call& call, std::int64_t& start, bool& nothing) {
    op::Bounds touched;
    const Fault fault = op::find_extent(call, 1, start, touched);
    nothing = touched.lo == touched.hi;
    return fault;
}

FastPart fast_part(Way way, const shm::ControlBlock& block) {
    switch (way) {
        case Way::Mapped:
            return {0, block.size, true};
        case Way::Mixed:
            return {block.shared_first, block.shared_end, true};
        case Way::Regions:  // no displacement, because addresses may be any
            return {std::numeric_limits<std::int64_t>::max(), 0, true};
        case Way::Unknown:
        case Way::Private:
        case Way::Net:
            break;
    }
    return {};
}

}  // namespace osc::reach
