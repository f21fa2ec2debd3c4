// One RMA operation with its operands flattened, and its execution on a target through a transport.
#pragma once

#include <cstdint>

#include "op/layout.h"
#include "op/transport.h"

namespace osc::op {

enum class Kind : std::uint8_t { Put, Get, Accumulate, GetAccumulate, CompareAndSwap };

/// `count` elements of `layout` at `base`; for the target, `base` is unused.
struct Operand {
    void* base = nullptr;
    std::size_t count = 0;
    const Layout* layout = nullptr;
};

struct Call {
    Kind kind = Kind::Put;
    Op op = Op::None;  // accumulates
    Operand origin;
    Operand result;  // GetAccumulate, CompareAndSwap
    const void* compare = nullptr;
    Operand target;
    std::int64_t disp = 0;  // displacement given by the user, in units of the target
};

/// Checks what does not depend on the target: sizes that agree, an operation that its type admits (MPI 4.1 sections
/// 12.3.1, 12.3.4). `what` is set for accumulates.
Fault check(const Call& call, Update& what);

/// Bytes [lo, hi) from the target's displacement 0 that the call touches, for a displacement unit; Fault::Range if
/// that leaves 64 bits.
Fault reach(const Call& call, std::uint64_t unit, std::int64_t& start, Bounds& touched);

/// Performs the call; `start` is the byte displacement of the target operand. All data is at the target on return.
Fault execute(const Call& call, const Update& what, std::int64_t start, Transport& target);

}  // namespace osc::op
