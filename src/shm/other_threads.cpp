// Knows the host's threads by when they begin (HostStarts), libosc's by their names, osc-*, and one that UCX starts
// later by the name "async". A program may give that name to a thread of its own: two threads with it, or one without
// UCX, count as the program's.
#include "shm/other_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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

// A thread's name, with a line break; empty if it cannot be read.
struct Name {
    char text[32] = {};

    // False if the thread has ended.
    bool read(long task) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/self/task/%ld/comm", task);
        const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return false;
        if (::read(fd, text, sizeof text - 1) < 0) text[0] = '\0';
        ::close(fd);
        return true;
    }
    bool is_ours() const { return std::strncmp(text, "osc-", 4) == 0; }
};

// Not by dlopen(), which may allocate.
bool ucx_is_loaded() {
    return ::dl_iterate_phdr([](dl_phdr_info* library, std::size_t,
                                void*) { return std::strstr(library->dlpi_name, "/libucs") != nullptr ? 1 : 0; },
                             nullptr) != 0;
}

// Numbers of threads, without memory from the heap.
struct Tasks {
    static constexpr int kMost = 64;
    long tasks[kMost] = {};
    int count = 0;

    bool has(long task) const { return std::find(tasks, tasks + count, task) != tasks + count; }
    bool add(long task) {
        if (count == kMost) return false;
        tasks[count++] = task;
        return true;
    }
};

// Those that began while the host started. The system gives a number again only after all others.
constinit Tasks g_of_host;

struct OtherThreads {
    bool program = false;  // the program has one
    int async = 0;         // named as UCX's
    Tasks host;            // the host's, and those named as UCX's
    bool listed = false;   // /proc lists them all
};

OtherThreads find_other_threads() {
    OtherThreads found;
    found.listed = each_other_task([&](long task) {
        if (g_of_host.has(task)) {
            if (!found.host.add(task)) found.program = true;
            return;
        }
        Name name;
        if (!name.read(task)) return;  // it has ended
        if (std::strcmp(name.text, "async\n") == 0) {
            ++found.async;
            if (!found.host.add(task)) found.program = true;
        } else if (!name.is_ours()) {
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

HostStarts::HostStarts() : alone_(!has_other_threads()) {}

HostStarts::~HostStarts() {
    if (!alone_) return;
    each_other_task([&](long task) {
        Name name;
        if (name.read(task) && !g_of_host.has(task) && !name.is_ours()) g_of_host.add(task);
    });
}

// A thread of the host may stand in the middle of malloc, so nothing may allocate or free from its signal on.
void stop_handlers(StoppedHandlers& state) {
    state.before = base::block_signals();
    const OtherThreads found = find_other_threads();
    if (found.host.count == 0 || (found.async > 0 && !ucx_is_loaded())) return;
    state.signal = found.async > 1 ? 0 : unused_signal();
    struct sigaction action = {};
    action.sa_handler = stand;
    action.sa_flags = SA_RESTART;
    ::sigfillset(&action.sa_mask);
    if (state.signal != 0 && ::sigaction(state.signal, &action, &state.action_before) != 0) state.signal = 0;
    state.stopped = state.signal != 0;
    if (!state.stopped) return;
    g_stop.store(true);
    int asked = 0;
    for (int i = 0; i < found.host.count; ++i) {
        if (::syscall(SYS_tgkill, ::getpid(), found.host.tasks[i], state.signal) == 0)
            ++asked;
        else if (errno != ESRCH)
            state.stopped = false;
    }
    state.stopped = await(asked) && state.stopped;
}

// A thread that did not stop in time finds the request withdrawn when it does. Its signal must not meet the default
// action, so the handler stays then.
void release_handlers(StoppedHandlers& state) {
    g_stop.store(false);
    const bool gone = await(0) && state.stopped;
    if (state.signal != 0 && gone) ::sigaction(state.signal, &state.action_before, nullptr);
    base::restore_signals(state.before);
}

}  // namespace osc::shm
