// Numbers by which processes find those that they may share memory with.
//
// A number for the machine of this process. Two processes with the same number run under one kernel in one network
// namespace, so each can connect to the other's abstract socket and pass its arena (fd_exchange.h), whatever their PID,
// user, IPC or mount namespaces. An equal number makes shared memory likely; the arena's token proves it.
#pragma once

#include <cstdint>

namespace osc::shm {

/// A hash of the kernel's boot id and of this process's network namespace; 0 if the system hides one of them.
/// Constant for the life of the process. Thread-safe.
std::uint64_t machine_number();

/// A hash of the kernel's boot id, of which nothing is known if the system hides it, and of the host's name. Constant
/// for the life of the process. Thread-safe.
std::uint64_t host_number();

}  // namespace osc::shm
