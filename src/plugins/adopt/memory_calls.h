// Watches the calls by which the program ends or discards adopted memory (adoption.h).
#pragma once

namespace osc {

/// Redirects the calls of free, realloc, munmap, mremap and madvise of all loaded libraries and the program, except
/// libosc's and the C library's own. Cheap if it has done so and no library was loaded since. Thread-safe.
void watch_memory_calls();

}  // namespace osc
