// The host MPI's nodes: which processes share one.
#pragma once

#include <mpi.h>

namespace osc::host {

/// The rank in `comm` of the first process that shares a node with this one, which is rank `rank` of `comm`; -1 if the
/// host does not know. Collective over `comm`.
int node_of(MPI_Comm comm, int rank);

/// Computes the minimum of a value over the processes of `comm`; collective. A host error code.
int least(MPI_Comm comm, int mine, int& result);

}  // namespace osc::host
