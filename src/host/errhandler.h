// What becomes of an error that is raised.
#pragma once

#include <mpi.h>

namespace osc::host {

/// Whether errors end the program, because of the error handler there.
bool window_errors_are_fatal(MPI_Win window);
bool comm_errors_are_fatal(MPI_Comm comm);

}  // namespace osc::host
