// The collective part of conflict detection (races.h): it sends accesses to their targets over the host MPI.
#pragma once

#include "window/window.h"

namespace osc {

/// Starts conflict detection for a window with a ledger that all its processes check; collective over `comm`, of which
/// the window has just been made.
void watch_races(Window& window, MPI_Comm comm);

/// Gives the program a mapping of its own of a window's memory here, whose loads and stores take part in conflict
/// detection. Does nothing where libosc has not allocated that memory for MPI_Win_allocate, or the system refuses: one
/// line says so. After watch_races().
void watch_memory(Window& window);

/// In MPI_Win_free, before it: compares accesses for the last time; collective. Does nothing while an open epoch
/// forbids the free.
void compare_before_free(Window& window);

/// Drops what is left of communicators whose windows are freed; when MPI ends. One thread.
void release_checker_comms();

}  // namespace osc
