// The machine of this process, as far as sharing memory goes: two processes with the same number have one kernel and
// one network namespace, so that each can connect to the other's abstract socket and pass its arena (passing.h),
// whatever PID, user, IPC or mount namespaces they live in. The number makes a node likely; the arena's token proves
// it.
#pragma once

#include <cstdint>

namespace osc::shm {

/// A hash of the kernel's boot id and of this process's network namespace; 0 if the system does not tell one of them.
/// Constant for the life of the process. Thread-safe.
std::uint64_t machine_number();

}  // namespace osc::shm
