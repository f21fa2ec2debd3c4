// Error handlers of the host.
#include "host/errhandler.h"

#include "host/real.h"

namespace osc::host {
namespace {

bool ends_program(MPI_Errhandler handler) {
    return handler == MPI_ERRORS_ARE_FATAL
#ifdef MPI_ERRORS_ABORT
           || handler == MPI_ERRORS_ABORT
#endif
        ;
}

}  // namespace

void free_handler(MPI_Errhandler& handler) {
    if (!ends_program(handler) && handler != MPI_ERRORS_RETURN) real().Errhandler_free(&handler);
}

bool window_errors_are_fatal(MPI_Win window) {
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    real().Win_get_errhandler(window, &handler);
    const bool fatal = ends_program(handler);
    free_handler(handler);
    return fatal;
}

bool comm_errors_are_fatal(MPI_Comm comm) {
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    real().Comm_get_errhandler(comm, &handler);
    const bool fatal = ends_program(handler);
    free_handler(handler);
    return fatal;
}

}  // namespace osc::host
