// Which devices with access to the memory of processes (graphics processors and others) this process has opened.
#pragma once

namespace osc::base {

/// Whether the process has a device of CUDA, HIP, Level Zero, XPMEM, Slingshot or InfiniBand, an io_uring or a
/// userfaultfd open. The device or the kernel may access any of the process's memory. That a library of theirs is
/// loaded does not mean it: UCX and hwloc load them on every machine. `folder` has a symbolic link to each open file.
/// True if the folder cannot be read. Thread-safe.
bool has_open_device(const char* folder = "/proc/thread-self/fd");

}  // namespace osc::base
