// What a provider says of its direct accesses and of its atomics is tried before it is believed.
#pragma once

#include "transport/ofi/endpoint.h"

namespace osc::ofi {

/// Writes to this process's own memory through the endpoint and reads it back. Leaves the reason in `flaw` if that
/// fails, takes longer than a second, brings other bytes, or a write is told as ended before its data is there: then
/// nothing is to be accessed directly, and messages carry all. For start-up: nothing else may be under way.
void probe_direct(Endpoint& endpoint, std::string& flaw);

/// The same with atomics, on two words of this process's own memory.
void probe_atomics(Endpoint& endpoint, std::string& flaw);

}  // namespace osc::ofi
