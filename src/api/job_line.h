// The line about the whole job that OSC_VERBOSE=1 prints.
#pragma once

#include "window/window.h"

namespace osc {

/// Prints the line, once a job, for the first window that this process makes; only its rank 0 prints. Thread-safe.
void describe_job(const Window& window);
/// At MPI_Finalize: the same, for a job that has made no window.
void describe_job_without_windows();

}  // namespace osc
