// The calls of MPI, besides those of windows, that order processes (process_order.h), where the program has
// ThreadSanitizer's runtime.
#pragma once

#include "window/window.h"

namespace osc {

/// Has loads and stores of the window's memory here take part in conflict detection by the runtime; collective over
/// `comm`, of which the window has just been made. False, on all processes, where they cannot: a process has no
/// runtime, the processes of the job do not all share memory, or no window of all of them has been made yet. After
/// watch_races().
bool watch_targets(Window& window, MPI_Comm comm);

/// A call has returned that may have completed a request; it has `gone` if its handle is MPI_REQUEST_NULL now.
void look_at_request(MPI_Request request, bool gone);
/// A request goes without a completion.
void forget_request(MPI_Request request);

}  // namespace osc
