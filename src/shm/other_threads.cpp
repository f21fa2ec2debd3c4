// Knows threads by their names: libosc's call themselves osc-*, the only one of UCX "async". A program may give that
// name to a thread of its own: two threads with it, or one without UCX, count as the program's.
#include "shm/other_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/helper_thread.h"

namespace osc::shm {
namespace {

// Calls f(thread number) for every thread but the caller; false if /proc does not list them. Allocates nothing.
template <class F>
bool each_other_task(F&& f) {
    const int tasks = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks < 0) return false;
    const long me = ::gettid();
    alignas(dirent64) char entries[4096];
    ssize_t got = 0;
    while ((got = ::getdents64(tasks, entries, sizeof entries)) > 0)
        for (ssize_t at = 0; at < got;) {
            const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
            at += entry->d_reclen;
            const long task = std::atol(entry->d_name);
            if (task != 0 && task != me) f(task);
        }
    ::close(tasks);
    return got == 0;
}

// Not by dlopen(), which may allocate.
bool ucx_is_loaded() {
    return ::dl_iterate_phdr([](dl_phdr_info* library, std::size_t,
                                void*) { return std::strstr(library->dlpi_name, "/libucs") != nullptr ? 1 : 0; },
                             nullptr) != 0;
}

struct OtherThreads {
    bool program = false;  // the program has one
    int async = 0;         // named as UCX's
    long host = 0;         // the last of these
    bool listed = false;   // /proc lists them all
};

OtherThreads find_other_threads() {
    OtherThreads found;
    found.listed = each_other_task([&](long task) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/self/task/%ld/comm", task);
        char name[32] = {};
        const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;  // it has ended
        const bool read = ::read(fd, name, sizeof name - 1) > 0;
        ::close(fd);
        if (read && std::strcmp(name, "async\n") == 0) {
            ++found.async;
            found.host = task;
        } else if (!read || std::strncmp(name, "osc-", 4) != 0) {
            found.program = true;
        }
    });
    const bool is_host = found.async == 1 && ucx_is_loaded();
    if (found.async > 0 && !is_host) found.program = true;
    return found;
}

// Shared with the handler.
std::atomic<int> g_standing{0};
std::atomic<bool> g_stop{false};

void pause_a_moment() {
    const timespec moment{0, 50'000};
    ::nanosleep(&moment, nullptr);
}

void stand(int) {
    const int error = errno;
    g_standing.fetch_add(1);
    while (g_stop.load())
        pause_a_moment();
    g_standing.fetch_sub(1);
    errno = error;
}

// A real-time signal that the program does not use; 0 if there is none.
int unused_signal() {
    for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
        struct sigaction action = {};
        if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) return signal;
    }
    return 0;
}

bool await(int standing) {
    for (int i = 0; i < 2000; ++i) {
        if (g_standing.load() == standing) return true;
        pause_a_moment();
    }
    return false;
}

}  // namespace

bool has_other_threads() {
    const OtherThreads found = find_other_threads();
    return found.program || !found.listed;
}

Handlers::Handlers() : before_(base::block_signals()) {
    stopped_ = stop();
}

// The host's thread may stand in the middle of malloc, so nothing may allocate or free from its signal on.
bool Handlers::stop() {
    const OtherThreads found = find_other_threads();
    if (found.async == 0 || !ucx_is_loaded()) return true;
    if (found.async > 1) return false;
    const long host = found.host;
    signal_ = unused_signal();
    struct sigaction action = {};
    action.sa_handler = stand;
    action.sa_flags = SA_RESTART;
    ::sigfillset(&action.sa_mask);
    if (signal_ == 0) return false;
    if (::sigaction(signal_, &action, &action_before_) != 0) {
        signal_ = 0;
        return false;
    }
    g_stop.store(true);
    return ::syscall(SYS_tgkill, ::getpid(), host, signal_) != 0 ? errno == ESRCH : await(1);
}

// A thread that did not stop in time finds the request withdrawn when it does. Its signal must not meet the default
// action, so the handler stays then.
Handlers::~Handlers() {
    g_stop.store(false);
    const bool gone = await(0) && stopped_;
    if (signal_ != 0 && gone) ::sigaction(signal_, &action_before_, nullptr);
    base::restore_signals(before_);
}

}  // namespace osc::shm
