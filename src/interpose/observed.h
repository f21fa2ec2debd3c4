// Facts of an operation that has ended, for the layers that observe calls (counted.h, traced.h).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "host/datatype.h"
#include "window/window.h"

namespace osc {

/// Bytes of `count` elements; 0 for a datatype that the host does not know.
inline std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
    const op::TypeInfo* const info = host::type_info(type);
    return info != nullptr ? info->layout.size() * static_cast<std::uint64_t>(count) : 0;
}

}  // namespace osc
