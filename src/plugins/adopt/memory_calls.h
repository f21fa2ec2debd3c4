// Watches the calls by which the program ends or discards adopted memory (adoption.h).
#pragma once

namespace osc {

/// Redirects the calls of free, realloc, munmap, mremap and madvise of all loaded libraries and the program, except
/// libosc's and the C library's own. Cheap if it has done so and no library was loaded since. Thread-safe.
void watch_memory_calls();

/// Whether the address lies in memory that libosc_heap.so allocates from (OSC_SHARE_HEAP).
bool in_shared_heap(const void* address);

}  // namespace osc
