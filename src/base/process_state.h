// What the system says about another process of this machine, without that process's help.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace osc::base {

struct ProcessState {
    char state = '?';             // of the main thread, as in /proc/PID/stat; 'X': ended; '?': the system does not say
    std::uint64_t cpu_ticks = 0;  // processor time of all threads, in clock ticks
};

/// The state of process `pid` that started at `start_time`, in clock ticks since boot. Thread-safe.
ProcessState process_state(pid_t pid, std::uint64_t start_time);

}  // namespace osc::base
