// Entry points that count (OSC_STATS), in front of libosc's own. Only the routes lead to them, and only if statistics
// are on: a program without them runs the same instructions as before.
#pragma once

#include "interpose/routes.h"
#include "stats/counters.h"

namespace osc {

/// Replaces libosc's own functions by the counting ones in the tables of routes. Before the first call.
void count_calls();

/// Counts an operation that has succeeded, of `count` elements at the target; `timer` began with it. Does nothing for
/// MPI_PROC_NULL.
void count_operation(MPI_Win win, stats::Kind kind, int rank, MPI_Count count, MPI_Datatype type,
                     const stats::OperationTimer& timer);

/// The counting forms of operations and synchronisation calls. They count calls that succeed.
namespace counted {
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_COUNTED_##kind(name, parameters)
#define OSC_COUNTED_Data(name, parameters) int name parameters;
#define OSC_COUNTED_Sync(name, parameters) int name parameters;
#define OSC_COUNTED_Window(name, parameters)
#define OSC_COUNTED_Query(name, parameters)
#define OSC_COUNTED_Comm(name, parameters)
#include "interpose/entries.def"
#undef OSC_COUNTED_Data
#undef OSC_COUNTED_Sync
#undef OSC_COUNTED_Window
#undef OSC_COUNTED_Query
#undef OSC_COUNTED_Comm
#undef OSC_ENTRY
}  // namespace counted

}  // namespace osc
