// libxpmem.so, by which a process maps memory of another one of its node where the kernel has the module of XPMEM
// (/dev/xpmem). The process needs no header of it: the few functions are declared here as the library has them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace osc::base {

struct Xpmem {
    using Segment = std::int64_t;  // a range of addresses that its owner shows
    using Permit = std::int64_t;   // of another process, for a segment; the driver knows it by the process
    struct Place {
        Permit permit;
        off_t offset;  // from the segment's start, in whole pages
    };

    // -1 if the system refuses. A segment's permission bits are those of a file; a permit's `access` is kReadAndWrite.
    Segment (*make)(void* start, std::size_t bytes, int permission_type, void* permission);
    Permit (*get)(Segment segment, int access, int permission_type, void* none);
    int (*release)(Permit permit);
    void* (*attach)(Place place, std::size_t bytes, void* wanted);  // MAP_FAILED if the system refuses
    int (*detach)(void* address);

    static constexpr int kMode = 1;  // the one type of permission
    static constexpr int kReadAndWrite = 2;
    static constexpr std::size_t kAll = ~std::size_t{0};
};

/// The library, loaded by the first call; null if this machine does not have it. Thread-safe.
const Xpmem* xpmem();

/// A segment of all of this process's memory, for processes of this user alone; -1 if the machine has no XPMEM.
Xpmem::Segment show_memory();

}  // namespace osc::base
