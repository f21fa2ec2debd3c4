// The short path of operations on an attached region that is mapped here: the one that the last operation on the target
// has used (transport/shm/last_region.h). It follows the fast paths, which know no addresses in attached memory, and
// has their limits. Every function returns false, with nothing done, if the general path must decide.
#pragma once

#include "interpose/data_small.h"

namespace osc::attached {

using small::Target;

bool put(const Target& target, const void* origin, int count, MPI_Datatype type);
bool get(const Target& target, void* origin, int count, MPI_Datatype type);
bool accumulate(const Target& target, const void* origin, int count, MPI_Datatype type, MPI_Op op);
/// MPI_Get_accumulate too. MPI_NO_OP reads no origin.
bool fetch(const Target& target, const void* origin, void* result, int count, MPI_Datatype type, MPI_Op op);
bool compare_and_swap(const Target& target, const void* origin, const void* compare, void* result, MPI_Datatype type);

}  // namespace osc::attached
