// Small services of the host MPI that the other rooms need: a private self-communicator for window handles, progress,
// waiting for a collective, thread level, completed requests, error reports.
#pragma once

#include <mpi.h>
#include <sched.h>

#include "host/real.h"

namespace osc::host {

/// A communicator of this process alone with MPI_ERRORS_RETURN, made from the group of `parent` on first use (so it
/// exists in a program that uses only sessions). MPI_COMM_NULL if the host cannot make one. Local.
MPI_Comm self_comm(MPI_Comm parent);
/// The same, once made.
MPI_Comm self_comm();

/// Drives the host's progress once, cheaply (invariant I3).
void progress();

/// Waits for a nonblocking host operation, yielding, and calls `meanwhile` in each round, which gives the wait up by
/// returning false: the operation is still under way then. Returns its error code.
template <class F>
int wait(MPI_Request& request, F&& meanwhile) {
    int done = 0;
    for (int round = 0;; ++round) {
        const int error = real().Test(&request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || done) return error;
        if (!meanwhile()) return MPI_SUCCESS;
        if (round > 100) ::sched_yield();
    }
}
inline int wait(MPI_Request& request) {
    return wait(request, [] { return true; });
}

/// Whether the program runs at MPI_THREAD_MULTIPLE; asked once, after initialisation.
bool threads();

/// A request that is complete already (an isend to nobody).
int completed_request(MPI_Request* request);

/// Sets how this process waits: `node_ranks` processes share the cores that this one may use.
void set_wait_policy(int node_ranks);

/// Releases what this room holds; at MPI_Finalize.
void release();

}  // namespace osc::host
