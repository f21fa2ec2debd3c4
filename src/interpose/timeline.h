// The timeline of a job (OSC_TRACE): its begin and its end in MPI.
#pragma once

namespace osc {

/// Begins to record, once, if OSC_TRACE asks for it; at the creation of the first window. Thread-safe.
void begin_timeline();

/// Ends the recording, and rank 0 merges the files of all processes. Collective, at the start of MPI_Finalize. If that
/// fails, or a process has died as far as the live windows of this process tell, the files stay, for `osc_info
/// --merge`.
void finish_timeline();

}  // namespace osc
