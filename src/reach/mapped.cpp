// Copies puts and gets between layouts; updates elements under their stripes.
// Build: -O3
#include "reach/mapped.h"

#include <utility>

#include "local/direct.h"
#include "op/copy.h"

namespace osc::reach {
namespace {

// Whether the update alone gains nothing from a batch: the fast paths perform it.
bool is_quick(const op::Simple& what) {
    if (what.kind == op::OpKind::CompareAndSwap) return true;
    if (what.how->op != Op::Sum && what.how->op != Op::Replace) return false;
    switch (what.how->basic) {
        case Basic::I32:
        case Basic::U32:
        case Basic::I64:
        case Basic::U64:
        case Basic::F64:
            return true;
        default:
            return false;
    }
}

void reopen(Target& target) {
    if (std::exchange(target.batched, false)) target.allow();
}

}  // namespace

// Whether an update joins the run. A long run takes quick updates of its targets along. Most of a long run end at the
// first test.
bool Mapped::joins(Target& target, const op::Simple& what) {
    if (__builtin_expect(target.batched && run_.goes_on(), 1)) return run_.lengthen();
    const bool quick = is_quick(what);
    if (!target.batched && (quick || target.fast_limit.load(std::memory_order_relaxed) == 0)) return false;
    if (!run_.look(true)) return false;
    if (target.batched && !run_.is_long()) {
        reopen(target);
        if (quick) return false;
    }
    if (!run_.lengthen()) return false;
    if (!target.batched) target.close();
    target.batched = true;
    return true;
}

Outcome Mapped::simple(Target& target, const op::Simple& what, bool /*prepared*/) {
    std::uint64_t offset = 0;
    if (!target.contains(what.disp, static_cast<std::int64_t>(what.bytes), target.full_limit, offset))
        return kNotServed;
    std::byte* const here = target.base + offset;
    if (!is_batchable(what) || !joins(target, what)) return load_or_store(target, what, here, offset);
    shm::ControlBlock& block = target.control();
    run_.batch().add(block.stripe_of(offset), batch_key(target, offset), element_at(here, what));
    return {.in_flight = true};
}

void Mapped::leave_run(Target& target) {
    run_.leave();
    reopen(target);
}

Outcome Mapped::execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) {
    std::byte* const there = target.base + start;
    const op::Operand& o = call.origin;
    const op::Operand& t = call.target;
    switch (call.kind) {
        case op::OpKind::Put:
            op::copy(*t.layout, t.count, there, *o.layout, o.count, o.base);
            return {};
        case op::OpKind::Get:
            op::copy(*o.layout, o.count, o.base, *t.layout, t.count, there);
            return {};
        default: {
            shm::Direct transport(target.base, origin_.stripes(target.control()));
            return {.fault = op::execute(call, what, start, transport)};
        }
    }
}

}  // namespace osc::reach
