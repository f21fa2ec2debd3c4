// What one process of this machine does, read without its help: its note in shared memory, and what the system says.
#pragma once

#include <cstdint>
#include <type_traits>

#include "shm/arena.h"

namespace osc::shm {

struct ProcessView {
    WaitNote wait;
    std::uint64_t identity = 0;    // see Activity; 0: the process could not be read
    std::uint64_t host_polls = 0;  // see Activity
    std::uint64_t cpu_ticks = 0;   // see base::ProcessState
    std::int32_t pid = 0;          // 0: this process sees no number of it
    std::uint32_t state = '?';     // see base::ProcessState
    std::uint32_t counts_polls = 0;
    std::uint32_t zero = 0;
};
static_assert(std::is_trivially_copyable_v<ProcessView> && sizeof(ProcessView) % 8 == 0);

/// Thread-safe.
ProcessView view_of(PeerArena& peer);
/// The same of this process.
ProcessView view_of_self();

}  // namespace osc::shm
