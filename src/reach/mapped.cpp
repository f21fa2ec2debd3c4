// Copies puts and gets between layouts; updates elements under their stripes.
// Build: -O3
#include "reach/mapped.h"

#include "local/direct.h"
#include "op/copy.h"

namespace osc::reach {

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
            shm::Direct transport(target.base, {target.control(), me_, liveness_});
            return {op::execute(call, what, start, transport)};
        }
    }
}

}  // namespace osc::reach
