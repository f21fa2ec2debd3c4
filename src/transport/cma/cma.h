// Cross-memory access: put and get on memory of a process of this node that is not shared, by process_vm_writev and
// process_vm_readv. The system transfers at most IOV_MAX pieces and 2 GiB less a page a call and may stop short at any
// byte; every call here goes on until all is moved or the system says why not.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "diag/fault.h"

namespace osc::cma {

enum class Direction { Read, Write };

/// Moves `bytes` bytes between local memory and address `remote` of process `pid`. Returns 0 or errno: EFAULT if
/// either side is not mapped, ESRCH if the process is gone, EPERM or ENOSYS if the system forbids it. Thread-safe.
int transfer(Direction direction, pid_t pid, std::uint64_t remote, void* local, std::size_t bytes);

/// The fault of an access to process `pid` that ended with `error`, with its text; None for 0.
Fault fault_of(int error, pid_t pid);

/// Collects pieces and moves them in batches. One per operation; not thread-safe.
class Batch {
  public:
    Batch(Direction direction, pid_t pid) : direction_(direction), pid_(pid) {}

    /// Adds a piece; moves what is collected when the batch is full. Errors are kept until `finish`.
    void add(std::uint64_t remote, void* local, std::size_t bytes);

    /// Moves what is left. Returns 0 or the first errno met.
    int finish();

  private:
    static constexpr std::size_t kPieces = 256;
    Direction direction_;
    pid_t pid_;
    std::size_t count_ = 0;
    int error_ = 0;
    iovec local_[kPieces];
    iovec remote_[kPieces];
};

/// Whether process `pid` lets us read it: reads the 8 bytes at `probe` and compares them with `token`, so that a
/// foreign process under the same number is not taken for it. Thread-safe.
bool reachable(pid_t pid, std::uint64_t probe, std::uint64_t token);

/// Allows every process of this user to attach where the Yama module would allow only ancestors. Harmless elsewhere.
void allow_peers();

}  // namespace osc::cma
