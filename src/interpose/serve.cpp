// Error reports.
#include "interpose/serve.h"

#include "diag/log.h"

namespace osc {
namespace {

bool ends_program(MPI_Errhandler handler) {
    return handler == MPI_ERRORS_ARE_FATAL
#ifdef MPI_ERRORS_ABORT
           || handler == MPI_ERRORS_ABORT
#endif
        ;
}

void free_handler(MPI_Errhandler& handler) {
    if (!ends_program(handler) && handler != MPI_ERRORS_RETURN) host::real().Errhandler_free(&handler);
}

}  // namespace

int raise(Window& window, const char* function, Fault fault) {
    const int error = error_class(fault);
    const host::Real& mpi = host::real();
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    mpi.Win_get_errhandler(window.handle, &handler);
    if (ends_program(handler)) {
        char name[MPI_MAX_OBJECT_NAME] = "";
        int length = 0;
        mpi.Win_get_name(window.handle, name, &length);
        diag::say("window 0x%x%s%s%s, rank %u of it: %s: %s", static_cast<unsigned>(window.handle),
                  length > 0 ? " \"" : "", name, length > 0 ? "\"" : "", window.me, function, diag::fault_text());
    }
    free_handler(handler);
    mpi.Win_call_errhandler(window.handle, error);
    return error;
}

int raise(MPI_Comm comm, const char* function, int error) {
    const host::Real& mpi = host::real();
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    mpi.Comm_get_errhandler(comm, &handler);
    if (ends_program(handler)) diag::say("%s: %s", function, diag::fault_text());
    free_handler(handler);
    mpi.Comm_call_errhandler(comm, error);
    return error;
}

int raise(const char* function, Fault fault) {
    int world_model = 0;
    host::real().Initialized(&world_model);
    return world_model ? raise(MPI_COMM_SELF, function, error_class(fault)) : error_class(fault);
}

int raise_freed(const char* function) {
    return raise(function, diag::fail(Fault::Win, "the window has been freed"));
}

}  // namespace osc
