// Waiting for communication of libosc's own over the host: of the reports at MPI_Finalize, and of the usage checker.
#pragma once

#include <mpi.h>

#include <vector>

#include "window/window.h"

namespace osc {

/// Waits for a request of the host, and gives up if a process of a live window has died. False then, or if the request
/// failed; its buffers may then be used for ever.
bool await_all(MPI_Request& request, const std::vector<Window*>& windows);

}  // namespace osc
