// The reports at MPI_Finalize: the statistics of a job (OSC_STATS) and its timeline (OSC_TRACE).
#pragma once

#include "api/plugins.h"

namespace osc {

/// Reports::statistics().
void report_statistics();
/// Reports::timeline().
void finish_timeline();

}  // namespace osc
