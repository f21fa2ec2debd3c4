// The requests of operations on other nodes (MPI 4.1 section 12.3.5). Each completes with its own operation.
#pragma once

#include <mpi.h>

#include "base/fault.h"
#include "net/origin/completion.h"
#include "window/window.h"

namespace osc::request {

/// Makes a request for an operation. The request is complete already if the operation has ended, or if the host has no
/// requests that libosc could complete. `host_error`: the host's error if it refuses; the result is the operation's
/// fault.
Fault give(Window& window, net::PendingOp pending, MPI_Request* request, int& host_error);

/// For MPI_Request_get_status and the like: completes the request if its operation has ended. The host does not poll in
/// these calls.
void look(MPI_Request request);

/// Completes orphans whose operations have ended.
void reap();

}  // namespace osc::request
