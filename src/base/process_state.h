// What the system says about another process of this machine, without that process's help.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace osc::base {

struct ProcessState {
    // Of the first thread, as in /proc/PID/stat. 'X': the process has ended; 'Z': only this thread; '?': the system
    // does not say.
    char state = '?';
    pid_t parent = 0;              // 0: the system does not say
    std::uint64_t cpu_ticks = 0;   // processor time of all threads, in clock ticks
    std::uint64_t start_time = 0;  // in clock ticks since boot
};

/// The state of process, or thread, `pid`. Thread-safe, as the other functions are.
ProcessState process_state(pid_t pid);

/// Its start time; 0 if it has ended; kUnknownStart if the system does not say (no descriptor left, no /proc).
inline constexpr std::uint64_t kUnknownStart = ~std::uint64_t{0};
std::uint64_t process_start_time(pid_t pid);

/// The number of a thread of process `pid` but the first; 0 if there is none. When the first thread has ended and
/// others run, the system refuses access to the process's memory and descriptors by the first one's number, and grants
/// it by any other's.
pid_t other_thread(pid_t pid);

}  // namespace osc::base
