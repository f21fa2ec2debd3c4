// The error handlers that the host has set.
#pragma once

#include <mpi.h>

namespace osc::host {

/// Whether the error handler there ends the program.
bool window_errors_are_fatal(MPI_Win window);
bool comm_errors_are_fatal(MPI_Comm comm);

/// Gives back a handler that a query of the host has returned; predefined ones stay.
void free_handler(MPI_Errhandler& handler);

}  // namespace osc::host
