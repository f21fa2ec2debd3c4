// MPI_Finalize of MPICH before 4.2 over UCX: each process closes its connections, which may need the progress of its
// peers, and then waits in a barrier of the process manager without making any (pmodels/mpich pull request 6596). A
// process that reaches the barrier first keeps its peers from closing, for ever.
#pragma once

namespace osc::host {

/// From now on the calling thread makes progress while its MPI_Finalize waits in that barrier. Changes nothing on a
/// host that lacks one of the functions involved. One thread, before the host's MPI_Finalize.
void hook_finalize();

}  // namespace osc::host
