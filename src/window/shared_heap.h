// Shared memory for the program's large allocations (OSC_SHARE_HEAP).
#pragma once

namespace osc {

/// Reserves the memory and gives it to libosc_heap.so, if the option asks for it; one line on stderr if that library is
/// not loaded or the system refuses. Called once, when libosc begins to serve the program.
void share_heap();

/// Whether libosc_heap.so allocates from shared memory.
bool heap_is_shared();

/// Whether the address lies in that memory.
bool in_shared_heap(const void* address);

}  // namespace osc
