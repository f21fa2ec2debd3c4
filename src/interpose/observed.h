// Facts of an operation that has ended, for the layers that observe calls (counted.h, traced.h).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "host/datatype.h"
#include "stats/counters.h"
#include "window/window.h"

namespace osc {

/// How the bytes of this thread's last operation, on `peer`, have travelled.
inline stats::DataPath path_of(const Peer& peer) {
    using stats::DataPath;
    switch (peer.path) {
        case Path::Direct:
            return DataPath::LoadStore;
        case Path::Cma:
            return DataPath::ProcessVm;
        case Path::Agent:
            return DataPath::Agent;
        case Path::Unknown:
        case Path::Mixed:
        case Path::Dynamic:
        case Path::Net:
            break;
    }
    return stats::t_path;
}

/// Bytes of `count` elements; 0 for a datatype that the host does not know.
inline std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
    const op::TypeInfo* const info = host::type_info(type);
    return info != nullptr ? info->layout.size() * static_cast<std::uint64_t>(count) : 0;
}

}  // namespace osc
