// Cross-memory access: put and get on private memory of another process of this node, by process_vm_writev and
// process_vm_readv. One call of the system transfers at most IOV_MAX pieces and less than 2 GiB, and may stop at any
// byte. The functions here repeat the call until all bytes are moved or the system reports an error.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "base/fault.h"

namespace osc::cma {

class Detour;  // local/detour.h

enum class Direction { Read, Write };

/// Moves `bytes` bytes between local memory and address `remote` of process `pid`. Returns 0 or errno: EFAULT if
/// either side is not mapped, ESRCH if the process is gone, EPERM or ENOSYS if the system forbids it. Thread-safe.
int transfer(Direction direction, pid_t pid, std::uint64_t remote, void* local, std::size_t bytes);

/// The fault of an access to process `pid` that ended with `error`, with its text; None for 0.
Fault fault_of(int error, pid_t pid);

/// Collects pieces and moves many in one call of the system. One per operation; not thread-safe.
class PieceList {
  public:
    static constexpr std::size_t kPieces = 256;

    /// `detour` takes the pieces that the system refuses.
    PieceList(Direction direction, pid_t pid, Detour* detour = nullptr)
        : direction_(direction), pid_(pid), detour_(detour) {}

    /// Adds bytes: to the last piece if they follow it on both sides, else as a new piece, because the system's work
    /// grows with the pieces. Moves the pieces when there are kPieces. finish() reports errors.
    void add(std::uint64_t remote, void* local, std::size_t bytes);

    /// Pieces that are collected now.
    std::size_t pieces() const { return count_; }

    /// Moves the remaining pieces. Returns 0 or the first errno.
    int finish();

    /// Whether the system has moved bytes.
    bool has_moved() const { return moved_; }

  private:
    bool extend(const std::byte* remote, const std::byte* local, std::size_t bytes);

    Direction direction_;
    pid_t pid_;
    Detour* detour_;
    bool moved_ = false;
    std::size_t count_ = 0;
    int error_ = 0;
    iovec local_[kPieces];
    iovec remote_[kPieces];
};

/// Whether this process may access the memory of process `pid`. Reads the 8 bytes at `probe` and compares them with
/// `token`, because another process may have that PID. Thread-safe.
bool reachable(pid_t pid, std::uint64_t probe, std::uint64_t token);

/// Lets every process of this user access this one, where the Yama module would only let ancestors. Harmless elsewhere.
void allow_peers();

}  // namespace osc::cma
