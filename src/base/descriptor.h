// Descriptors 0 to 2 belong to the program's streams, also where the program has closed them: what it, the C library or
// a child writes to a stream later must not reach a file of libosc.
#pragma once

#include <string_view>

namespace osc::base {

/// Moves a descriptor that libosc has just opened above 2, with close-on-exec, and returns its number. Returns -1 with
/// errno set, and closes the descriptor, if the process can open no further one; -1 stays -1. Thread-safe.
int above_stdio(int descriptor);

/// Opens /dev/null as those of descriptors 0 to 2 that are closed, for good: before the use of a library that opens
/// descriptors of its own at any time. No error: what the system refuses stays closed. Thread-safe.
void occupy_stdio();

/// Writes all of `text`, also if signals interrupt it. False with errno.
bool write_all(int descriptor, std::string_view text);

/// Whether the process has a device of CUDA, HIP, Level Zero, XPMEM, Slingshot or InfiniBand, an io_uring or a
/// userfaultfd open. The device or the kernel may access any of the process's memory. That a library of theirs is
/// loaded does not mean it: UCX and hwloc load them on every machine. `folder` has a symbolic link to each open file.
/// True if the folder cannot be read. Thread-safe.
bool has_open_device(const char* folder = "/proc/thread-self/fd");

}  // namespace osc::base
