// Shared memory for the program's large allocations (OSC_SHARE_HEAP).
#pragma once

namespace osc {

/// See Adopter.
void share_heap();

/// Whether libosc_heap.so allocates from shared memory.
bool heap_is_shared();

/// Whether the address lies in that memory.
bool in_shared_heap(const void* address);

}  // namespace osc
