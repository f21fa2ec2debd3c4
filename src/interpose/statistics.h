// The report of the statistics of a job (OSC_STATS).
#pragma once

namespace osc {

/// Gathers the statistics of all processes at rank 0, which prints the table and writes the JSON. Collective, at the
/// start of MPI_Finalize. If a process has died, as far as the live windows of this process tell, rank 0 reports its
/// own statistics only.
void report_statistics();

}  // namespace osc
