// What the host MPI says of nodes: which processes share one, and whether the user has made nodes up.
#pragma once

#include <mpi.h>

namespace osc::host {

/// The rank in `comm` of the first process that shares a node with this one, which is rank `rank` of `comm`; -1 if the
/// host cannot say. Collective over `comm`. With `apart` this process counts as alone on a node.
int node_of(MPI_Comm comm, int rank, bool apart);

/// The least of what the processes of `comm` give; collective. A host error code.
int least(MPI_Comm comm, int mine, int& result);

/// Whether the user has the host make nodes up, by MPICH's variables for tests (MPIR_CVAR_NUM_CLIQUES and the like):
/// libosc then takes the host's nodes as they are.
bool nodes_made_up();

}  // namespace osc::host
