// MPI_Finalize of MPICH before 4.2 over UCX: each process closes its connections, which may need the progress of its
// peers, and then waits in a barrier of the process manager without making any (pmodels/mpich pull request 6596). A
// process that reaches the barrier first keeps its peers from closing, for ever.
#pragma once

namespace osc::host {

/// Makes the calling thread's MPI_Finalize progress while it waits in that barrier. Has no effect on a host that lacks
/// one of the functions involved. One thread calls it, before the host's MPI_Finalize.
void hook_finalize();

}  // namespace osc::host
