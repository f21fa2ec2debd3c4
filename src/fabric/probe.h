// Tests a provider's direct accesses and atomics before libosc relies on them.
#pragma once

#include <cstddef>
#include <string>

#include "base/function_ref.h"
#include "fabric/endpoint.h"

namespace osc::fabric {

/// Writes to this process's own memory through the endpoint and reads it back. Returns the flaw if that fails, takes
/// longer than five seconds, or transfers other bytes, or if a write ends before its data has arrived: messages then
/// carry all data. "" if all is right. Only at start-up, without other operations in flight.
std::string probe_direct(Endpoint& endpoint);

/// Why a registration cache is not to be used; "" if it is right. The probe writes from memory that the process gives
/// back to the system and gets again at the same address: a heap that shrinks, a mapping that goes, moves or loses its
/// pages. A cache that misses this sends the bytes of pages that are gone. A change that the probe cannot bring about,
/// for instance because malloc() returns another address, counts as missed. The endpoint must take these writes by
/// registrations: they are longer than a slot.
std::string probe_cache(Endpoint& endpoint);
inline constexpr const char* kStale = "the cache keeps registrations of memory that is gone";

/// Lets a block at the heap's end go back to the system and come back at its address. `use` gets a part of it, before
/// (time 0) and after (time 1), and returns false if the memory is not what it should be. "" if `use` was content;
/// kStale if it was not; else why the heap did not shrink.
std::string renew_heap(base::FunctionRef<bool(void* memory, std::size_t bytes, int time)> use);

/// As probe_direct() with atomics, on two words of this process's own memory.
std::string probe_atomics(Endpoint& endpoint);

/// The same with atomics on rows of signed words: Update, Fetch and Swap. An Update must be complete when it ends.
std::string probe_rows(Endpoint& endpoint);

}  // namespace osc::fabric
