// Nearly every call: an operation whose operands are contiguous elements of one predefined type without padding, of
// which origin and target have the same number.
#pragma once

#include <cstdint>

#include "op/call.h"

namespace osc::op {

struct Simple {
    OpKind kind = OpKind::Put;
    std::uint64_t bytes = 0;       // at least 1
    std::int64_t disp = 0;         // in the target's units
    const void* origin = nullptr;  // null for a get and for MPI_NO_OP
    void* result = nullptr;        // of what returns data
    const Update* how = nullptr;   // of all but put and get
    bool has_request = false;      // that is complete when the call returns, so buffers are free and results stored

    bool is_transfer() const { return how == nullptr; }
};

}  // namespace osc::op
