// Facts of an operation that has ended, for the layers that observe calls (counted.h, traced.h).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "api/routes.h"
#include "host/datatype.h"
#include "window/window.h"

namespace osc {

/// What an operation accesses at its target.
struct Elements {
    Elements(MPI_Count elements, MPI_Datatype datatype) : count(elements), type(datatype) {}
    MPI_Count count;
    MPI_Datatype type;
};

/// The same from the parameters of the entry point `name`.
#define OSC_ELEMENTS(name) OSC_CHOOSE(OSC_ELEMENTS_##name, ::osc::Elements(target_count, target_datatype), )
#define OSC_ELEMENTS_Fetch_and_op , ::osc::Elements(1, datatype)
#define OSC_ELEMENTS_Compare_and_swap , ::osc::Elements(1, datatype)

/// 0 for a datatype that the host does not know.
inline std::uint64_t bytes_of(Elements target) {
    const op::TypeInfo* const info = host::type_info(target.type);
    return info != nullptr ? info->layout.size() * static_cast<std::uint64_t>(target.count) : 0;
}

}  // namespace osc
