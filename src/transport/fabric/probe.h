// Tests a provider's direct accesses and atomics before libosc relies on them.
#pragma once

#include "transport/fabric/endpoint.h"

namespace osc::fabric {

/// Writes to this process's own memory through the endpoint and reads it back. Sets `flaw` if that fails, takes longer
/// than a second, or transfers other bytes, or if a write ends before its data has arrived: messages then carry all
/// data. Only at start-up, without other operations in flight.
void probe_direct(Endpoint& endpoint, std::string& flaw);

/// The same with atomics, on two words of this process's own memory.
void probe_atomics(Endpoint& endpoint, std::string& flaw);

/// The same with atomics on rows of signed words: Update, Fetch and Swap. An Update must be complete when it ends.
void probe_rows(Endpoint& endpoint, std::string& flaw);

}  // namespace osc::fabric
