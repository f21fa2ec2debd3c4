// The requests of operations on other nodes (MPI 4.1 section 12.3.5): each ends with its own operation and waits for
// no other.
#pragma once

#include <mpi.h>

#include "diag/fault.h"
#include "transport/net/ticket.h"
#include "window/window.h"

namespace osc::request {

/// Gives a request for an operation with a ticket: one that is complete already, if it has ended or the host has no
/// requests that libosc could complete. `host_error` is the host's, if it refuses; the fault is the operation's.
Fault give(Window& window, net::Asked asked, MPI_Request* request, int& host_error);

/// For calls that ask for a request's status, in which the host does not look itself.
void look(MPI_Request request);

/// Gives the host back what was freed by the user before it had ended, and has ended now.
void reap();

}  // namespace osc::request
