// Requests that libosc completes: generalized requests that the host polls in its own wait and test calls
// (abi::PolledRequest).
#pragma once

#include <mpi.h>

namespace osc::host {

/// The operation of such a request. The host calls these functions in calls of the application, without a lock.
class Awaited {
  public:
    /// Polls the operation once; calls complete_request() if it has ended.
    virtual void look() = 0;
    /// Waits until the operation has ended, and calls complete_request().
    virtual void await() = 0;
    /// The error code that the completing call returns.
    virtual int result() = 0;
    /// Called when the user's handle is freed: after the completing call, or by MPI_Request_free before it.
    virtual void released() = 0;

  protected:
    ~Awaited() = default;
};

/// Only if abi::progress().polls_requests().
int start_request(Awaited& what, MPI_Request* request);
void complete_request(MPI_Request request);

/// A generalized request without an operation, until MPI_Grequest_complete. Returns an error code of the host.
int start_empty_request(MPI_Request* request);

/// Replaces shared_request(), which many operations have, by a completed request with a handle of its own, for the
/// usage checker; other requests stay. Returns an error code of the host.
int give_own_handle(MPI_Request* request);

/// Whether an error of a completing call would end the program: the host uses the error handler of requests without a
/// communicator.
bool request_errors_are_fatal();

}  // namespace osc::host
