// Error reports.
// Build: start
#include "api/serve.h"

#include "base/log.h"
#include "host/host.h"
#include "window/checker.h"

namespace osc {
namespace {

// Ends the job as the host's fatal error handler does. The host would name MPI_Win_call_errhandler or
// MPI_Comm_call_errhandler as the function that failed. A program that uses Sessions only has no MPI_COMM_WORLD, and
// gets the handler.
void abort_job(int error) {
    int world_model = 0;
    host::real().Initialized(&world_model);
    if (world_model) host::real().Abort(MPI_COMM_WORLD, error);
}

}  // namespace

int raise(Window& window, const char* function, Fault fault) {
    const int error = error_class(fault);
    host::fail_next_request(false);
    if (window.core.ledger != nullptr) g_checker->fault(window, function, fault);
    if (host::window_errors_are_fatal(window.handle)) {
        base::say("%s, rank %u of it: %s: %s", host::name_of(window.handle).c_str(), window.core.me, function,
                  base::fault_text());
        abort_job(error);
    }
    host::real().Win_call_errhandler(window.handle, error);
    return error;
}

int raise(MPI_Comm comm, const char* function, int error) {
    if (host::comm_errors_are_fatal(comm)) {
        base::say("%s: %s", function, base::fault_text());
        abort_job(error);
    }
    host::real().Comm_call_errhandler(comm, error);
    return error;
}

int raise(const char* function, Fault fault) {
    int world_model = 0;
    host::real().Initialized(&world_model);
    return world_model ? raise(MPI_COMM_SELF, function, error_class(fault)) : error_class(fault);
}

Fault no_result() {
    return base::fail(Fault::Arg, "the address for the result is null");
}

int raise_freed(const char* function) {
    return raise(function, base::fail(Fault::Win, "the window has been freed"));
}

}  // namespace osc
