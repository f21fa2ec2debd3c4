// What a job reports at MPI_Finalize, as the rest of libosc sees it: a plugin, libosc_reports.so (src/plugins/reports),
// which is in memory only if OSC_STATS or OSC_TRACE asks for a report.
#pragma once

namespace osc {

struct Reports {
    /// Gathers the statistics of all processes and prints them. Collective, at MPI_Finalize.
    void (*statistics)();
    /// Ends the recording of the timeline, and rank 0 merges the files of all processes. Collective, at MPI_Finalize.
    /// The files stay for osc_info if that fails, or if the live windows of this process know that a process has died.
    void (*timeline)();
};

/// Null: nothing is reported. Constant once the routes are set.
inline constinit const Reports* g_reports = nullptr;

}  // namespace osc
