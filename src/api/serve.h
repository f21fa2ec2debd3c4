// The common parts of the entry points: the window of a handle, forwarding to the host, and the report of an error.
#pragma once

#include <mpi.h>

#include "api/routes.h"
#include "base/fault.h"
#include "host/host.h"
#include "window/create.h"
#include "window/registry.h"

namespace osc {

/// Passes a call on a window that libosc does not serve to the host, which also reports invalid handles.
#define OSC_FORWARD(name, arguments)                                \
    do {                                                            \
        const int forwarded = ::osc::host::real().name arguments;   \
        if (forwarded == MPI_SUCCESS) count_forwarded(Entry::name); \
        return forwarded;                                           \
    } while (0)

/// The same for a call on a window. A freed handle is refused here, because the host may crash on it.
#define OSC_FORWARD_ON(handle, name, arguments)                         \
    do {                                                                \
        if (was_freed(handle)) return ::osc::raise_freed("MPI_" #name); \
        OSC_FORWARD(name, arguments);                                   \
    } while (0)

/// Begins an entry point that libosc serves: `window` is the one of `handle`, and the call counts as served. A call on
/// another window ends here.
#define OSC_ON_WINDOW(handle, name, arguments)                      \
    Window* const window = find_window(handle);                     \
    if (window == nullptr) OSC_FORWARD_ON(handle, name, arguments); \
    count_served(Entry::name)

/// Raises `fault` (with base::fault_text()) of MPI function `function` through the window's error handler. If that ends
/// the program, it first prints one line with the cause. Returns the error class.
int raise(Window& window, const char* function, Fault fault);

/// The same for errors before a window exists, through the communicator's handler.
int raise(MPI_Comm comm, const char* function, int error);

/// The same for calls with neither: through MPI_COMM_SELF's handler (MPI 4.1 section 9.3), unless the program uses
/// Sessions only and has none.
int raise(const char* function, Fault fault);

/// Redirects calls of MPI's functions that libraries make past libosc, because they were loaded with RTLD_DEEPBIND;
/// from then on also those of libraries that are loaded later. Thread-safe.
void redirect_plugins();

/// Prints the line about the whole job, once a job, for the first window that this process makes; only its rank 0
/// prints. Thread-safe.
void describe_job(const Window& window);

/// Fault::Arg, for a null address in place of one where a result goes.
Fault no_result();

/// MPI_ERR_WIN for the handle of a window that libosc has freed.
int raise_freed(const char* function);

inline int finish(Window& window, const char* function, Fault fault) {
    return __builtin_expect(fault == Fault::None, 1) ? MPI_SUCCESS : raise(window, function, fault);
}

using abi::op_of;

}  // namespace osc
