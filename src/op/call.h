// One RMA operation with its operands flattened, and its execution on a target through a transport.
#pragma once

#include <cstdint>

#include "op/layout.h"
#include "op/transport.h"

namespace osc::op {

enum class OpKind : std::uint8_t { Put, Get, Accumulate, GetAccumulate, CompareAndSwap };

/// `count` elements of `layout` at `base`; for the target, `base` is unused.
struct Operand {
    void* base = nullptr;
    std::size_t count = 0;
    const Layout* layout = nullptr;
};

struct Call {
    OpKind kind = OpKind::Put;
    Op op = Op::None;  // accumulates
    Operand origin;
    Operand result;  // GetAccumulate, CompareAndSwap
    const void* compare = nullptr;
    Operand target;
    std::int64_t disp = 0;  // displacement given by the user, in units of the target
};

/// Checks the rules that do not depend on the target: the sizes agree, and the type admits the operation (MPI 4.1
/// sections 12.3.1, 12.3.4). Sets `what` for accumulates.
Fault check(const Call& call, Update& what);

/// Computes the bytes [lo, hi) from the target's displacement 0 that the call touches, none for a get into no elements;
/// Fault::Range on overflow of 64 bits.
Fault find_extent(const Call& call, std::uint64_t unit, std::int64_t& start, Bounds& touched);

/// Performs the call; `start` is the byte displacement of the target operand. All data is at the target on return.
Fault execute(const Call& call, const Update& what, std::int64_t start, Transport& target);

}  // namespace osc::op
