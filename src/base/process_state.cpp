#include "base/process_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace osc::base {

namespace {

// By a file of /proc, in the form of /proc/PID/stat.
ProcessState state_by(const char* path, pid_t pid) {
    char text[1024];
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    // A /proc that hides other users' processes has no file of theirs either.
    if (file < 0) return {errno == ENOENT && ::kill(pid, 0) != 0 && errno == ESRCH ? 'X' : '?'};
    const ssize_t got = ::read(file, text, sizeof text - 1);
    const bool gone = got < 0 && errno == ESRCH;
    ::close(file);
    if (got <= 0) return {gone ? 'X' : '?'};
    text[got] = '\0';
    const char* const name_end = std::strrchr(text, ')');  // the name may contain blanks and brackets
    if (name_end == nullptr) return {};
    ProcessState found;
    unsigned long long user = 0;
    unsigned long long system = 0;
    unsigned long long started = 0;
    long threads = 0;
    // Fields 3 (state), 4 (parent), 14 and 15 (processor time), 20 (threads) and 22 (start time); see proc(5).
    const int fields =
        std::sscanf(name_end + 1, " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %ld %*s %llu",
                    &found.state, &found.parent, &user, &system, &threads, &started);
    if (fields != 6) return {};
    found.cpu_ticks = user + system;
    found.start_time = started;
    if ((found.state == 'Z' && threads <= 1) || found.state == 'x') found.state = 'X';
    return found;
}

}  // namespace

ProcessState process_state(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
    return state_by(path, pid);
}

pid_t other_thread(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task", static_cast<int>(pid));
    DIR* const tasks = ::opendir(path);
    if (tasks == nullptr) return 0;
    pid_t found = 0;
    while (const dirent* const task = found == 0 ? ::readdir(tasks) : nullptr)
        if (const pid_t thread = std::atoi(task->d_name); thread != pid) found = thread;
    ::closedir(tasks);
    return found;
}

// qemu, when it emulates a process, makes up that process's own /proc/PID/stat, with a start time that other processes
// do not see. It leaves the file of the first thread alone, which has the same time.
std::uint64_t process_start_time(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", static_cast<int>(pid), static_cast<int>(pid));
    const ProcessState found = pid == ::getpid() ? state_by(path, pid) : process_state(pid);
    return found.state == 'X' ? 0 : found.state == '?' ? kUnknownStart : found.start_time;
}

}  // namespace osc::base
