// One operation on one run of bytes of this process's memory, for another process: checked, and done under the locks of
// every other path. What agents do for their node and the network's threads for others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/status.h"
#include "transport/direct/direct.h"

namespace osc::agent {

enum class Kind : std::uint8_t {
    Put = 1,         // data is written
    Get,             // the bytes are returned
    Update,          // accumulate: each element is combined with the data
    UpdateReturn,    // get_accumulate: the elements as they were are returned too
    CompareAndSwap,  // data: the new element, then the one to compare with; the old one is returned
};

/// Whether the standard defines the operation, and `bytes` are whole elements (exactly one for compare-and-swap);
/// `how` is filled in for all but put and get.
Status check_operation(Kind kind, Basic basic, Op op, std::uint64_t bytes, Update& how);

/// Does it; `data` is what the kind needs (nothing for MPI_NO_OP), `out` receives what it returns.
Status work(shm::Direct& memory, Kind kind, const Update& how, std::int64_t disp, std::size_t bytes,
            const std::byte* data, std::byte* out);

}  // namespace osc::agent
