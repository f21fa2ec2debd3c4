// What the ways have in common: the bounds of a target's memory.
// Build: -O3
#include "reach/reach.h"

#include <limits>

namespace osc::reach {

Outcome LocalReach::perform(Target& target, const op::Call& call, const Update& what, const Extras& /*extras*/) {
    std::int64_t start = 0;
    bool nothing = false;
    const Fault fault = find_start(target, call, start, nothing);
    if (fault != Fault::None || nothing) {
        note_path(target);
        return {fault};
    }
    return execute(target, call, what, start);
}

Fault LocalReach::admit(Target& target, const op::Call& call, bool& nothing) {
    std::int64_t start = 0;
    note_path(target);
    return find_start(target, call, start, nothing);
}

Fault LocalReach::find_start(Target& target, const op::Call& call, std::int64_t& start, bool& nothing) {
    return find_start_in(target.rank, target.control().size, target.unit, call, start, nothing);
}

Fault find_start_in(std::uint32_t rank, std::uint64_t size, std::uint64_t unit, const op::Call& call,
                    std::int64_t& start, bool& nothing) {
    op::Bounds touched;
    if (const Fault fault = op::find_extent(call, unit, start, touched); fault != Fault::None) return fault;
    nothing = touched.lo == touched.hi;
    if (nothing || (touched.lo >= 0 && static_cast<std::uint64_t>(touched.hi) <= size)) return Fault::None;
    return base::fail(Fault::Range, "bytes [%lld, %lld) of rank %u, whose window has %llu bytes",
                      static_cast<long long>(touched.lo), static_cast<long long>(touched.hi), rank,
                      static_cast<unsigned long long>(size));
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
