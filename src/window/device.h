// Device memory, which the processor cannot load and store. The host serves windows over it.
#pragma once

namespace osc {

/// Whether `address` lies in device memory, by the device libraries (of CUDA, HIP and Level Zero) that the process has
/// loaded; libosc loads none. Managed and pinned memory does not count, because the processor can access it. Takes a
/// fraction of a microsecond if no such library is loaded. Thread-safe.
bool in_device_memory(const void* address);

}  // namespace osc
