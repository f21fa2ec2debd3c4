// Entry points that record (OSC_TRACE), in front of what the routes led to before: libosc's own functions, or a layer
// such as the counting ones. Only the routes lead to them, and only if there is a timeline.
#pragma once

namespace osc {

/// Puts the recording functions in front in the tables of routes. Before the first call, after other layers.
void trace_calls();

}  // namespace osc
