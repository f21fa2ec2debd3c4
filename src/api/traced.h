// Entry points that record (OSC_TRACE), in front of what the routes led to before: libosc's own functions, or a layer
// such as the counting ones. Only the routes lead to them, and only if there is a timeline.
#pragma once

#include "api/observed.h"
#include "trace/record.h"

namespace osc {

/// Puts the recording functions in front in the tables of routes. Before the first call, after other layers.
void trace_calls();

/// Records an operation that has ended; nothing for MPI_PROC_NULL. `detail`: bits of the record's value beside the
/// bytes.
void record_operation(trace::Call call, std::uint64_t begin, MPI_Win win, int rank, Elements target, int error,
                      std::uint64_t detail = 0);

}  // namespace osc
