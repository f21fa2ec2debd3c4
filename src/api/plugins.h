// The plugins that options ask for, and what src/api has for them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

namespace osc {

class Window;

/// What a job reports at MPI_Finalize: a plugin, libosc_reports.so (src/plugins/reports), which is in memory only if
/// OSC_STATS or OSC_TRACE asks for a report.
struct Reports {
    /// Gathers the statistics of all processes and prints them. Collective, at MPI_Finalize.
    void (*statistics)();
    /// Ends the recording of the timeline, and rank 0 merges the files of all processes. Collective, at MPI_Finalize.
    /// The files stay for osc_info if that fails, or if the live windows of this process know that a process has died.
    void (*timeline)();
};

/// Null: nothing is reported. Constant once the routes are set.
inline constinit const Reports* g_reports = nullptr;

/// Loads the reports if OSC_STATS or OSC_TRACE asks for them. Without them one line says why, and both are off. Once,
/// before announce_settings().
void load_reports();

/// Loads the usage checker, which puts its entry points in front of all others in the routes. Without it one line says
/// why, and the program runs unchecked. Once, before the first call of the program.
void load_checker();

/// The statistics of a process that tools/counters.def lists: their names and their values, in the order of the table.
std::span<const char* const> counter_names();
std::vector<std::uint64_t> counter_values();

/// Waits for a request of the host, and gives up if a process of a live window has died. False then, or if the request
/// failed; its buffers may then be used for ever.
bool await_all(MPI_Request& request, const std::vector<Window*>& windows);

}  // namespace osc
