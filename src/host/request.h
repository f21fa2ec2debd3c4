// Requests that libosc completes: generalized requests which the host polls in its own wait and test calls. That is an
// extension of MPICH's.
#pragma once

#include <mpi.h>

namespace osc::host {

/// What such a request stands for. Called by the host in calls of the application's, under none of its locks.
class Awaited {
  public:
    /// Looks whether it has ended, once; then complete_request() has been called.
    virtual void look() = 0;
    /// Waits for that.
    virtual void await() = 0;
    /// The error code that the completing call returns.
    virtual int result() = 0;
    /// The user's handle is gone: after the completing call, or by MPI_Request_free before it.
    virtual void released() = 0;

  protected:
    ~Awaited() = default;
};

/// Whether the host has the extension.
bool can_start_requests();
int start_request(Awaited& what, MPI_Request* request);
void complete_request(MPI_Request request);

/// Whether an error of a completing call would end the program, because of the error handler that the host takes for
/// requests without a communicator.
bool request_errors_are_fatal();

}  // namespace osc::host
