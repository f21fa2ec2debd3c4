// Device memory: what the processor cannot load and store. A window over it is the host's affair.
#pragma once

namespace osc {

/// Whether `address` lies in device memory, as the device libraries say that this process has loaded by now (CUDA's,
/// HIP's, Level Zero's); libosc loads none. Memory that a device library manages, or has pinned, is not meant: the
/// processor reaches it. Takes a fraction of a microsecond where there is none. Thread-safe.
bool in_device_memory(const void* address);

}  // namespace osc
