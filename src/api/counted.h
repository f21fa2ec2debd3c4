// Entry points that count (OSC_STATS), in front of libosc's own. Only the routes lead to them, and only if statistics
// are on: a program without them runs the same instructions as before.
#pragma once

#include "api/observed.h"
#include "stats/counters.h"

namespace osc {

/// Replaces libosc's own functions by the counting ones in the tables of routes. Before the first call.
void count_calls();

/// Counts an operation that has succeeded; `timer` began with it. Does nothing for MPI_PROC_NULL.
void count_operation(MPI_Win win, stats::Kind kind, int rank, Elements target, const stats::OperationTimer& timer);

}  // namespace osc
