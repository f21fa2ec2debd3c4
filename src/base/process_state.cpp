#include "base/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace osc::base {

ProcessState process_state(pid_t pid, std::uint64_t start_time) {
    char text[1024];
    std::snprintf(text, sizeof text, "/proc/%d/stat", static_cast<int>(pid));
    const int file = ::open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0) return {errno == ENOENT ? 'X' : '?', 0};
    const ssize_t got = ::read(file, text, sizeof text - 1);
    const bool gone = got < 0 && errno == ESRCH;
    ::close(file);
    if (got <= 0) return {gone ? 'X' : '?', 0};
    text[got] = '\0';
    const char* const name_end = std::strrchr(text, ')');  // the name may contain blanks and brackets
    if (name_end == nullptr) return {};
    ProcessState found;
    unsigned long long user = 0;
    unsigned long long system = 0;
    unsigned long long started = 0;
    // Fields 3 (state), 14 and 15 (processor time) and 22 (start time); see proc(5).
    const int fields =
        std::sscanf(name_end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %*s %*s %llu",
                    &found.state, &user, &system, &started);
    if (fields != 4) return {};
    found.cpu_ticks = user + system;
    if (started != start_time || found.state == 'Z' || found.state == 'x') found.state = 'X';
    return found;
}

}  // namespace osc::base
