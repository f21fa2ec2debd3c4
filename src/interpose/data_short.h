// The short paths, which calls try behind the fast ones: small operations to targets of other nodes, and operations on
// an attached region that is mapped here. Only for a contiguous predefined type, the same at origin and target. Every
// function returns false, with nothing done, if the general path must decide.
#pragma once

#include "window/window.h"

namespace osc::short_path {

/// One call's view of its operands; counts are equal at origin and target.
struct Target {
    Window* window;  // or null
    int rank;
    MPI_Aint disp;
};

bool put(const Target& target, const void* origin, int count, MPI_Datatype type);
bool get(const Target& target, void* origin, int count, MPI_Datatype type);
bool accumulate(const Target& target, const void* origin, int count, MPI_Datatype type, MPI_Op op);
/// MPI_Get_accumulate too. MPI_NO_OP reads no origin.
bool fetch(const Target& target, const void* origin, void* result, int count, MPI_Datatype type, MPI_Op op);
bool compare_and_swap(const Target& target, const void* origin, const void* compare, void* result, MPI_Datatype type);

}  // namespace osc::short_path
