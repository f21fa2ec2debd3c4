// Knows threads by their names: libosc's call themselves osc-*, the only one of UCX "async".
#include "transport/shm/other_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace osc::shm {
namespace {

enum class Owner { Libosc, Host, Program };

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

// Calls f(thread number, owner) in the same way.
template <class F>
bool each_other_thread(F&& f) {
    bool host_seen = false;
    return each_other_task([&](long task) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/self/task/%ld/comm", task);
        char name[32] = {};
        const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;  // it has ended
        const bool read = ::read(fd, name, sizeof name - 1) > 0;
        ::close(fd);
        const bool host = read && !host_seen && std::strcmp(name, "async\n") == 0;
        host_seen = host_seen || host;
        f(task, host ? Owner::Host : read && std::strncmp(name, "osc-", 4) == 0 ? Owner::Libosc : Owner::Program);
    });
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
    bool others = false;
    const bool listed = each_other_thread([&](long, Owner owner) { others = others || owner == Owner::Program; });
    return others || !listed;
}

Handlers::Handlers() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    stopped_ = stop();
}

// The host's thread may stand in the middle of malloc, so nothing may allocate or free from its signal on.
bool Handlers::stop() {
    long host = 0;
    each_other_thread([&](long task, Owner owner) {
        if (owner == Owner::Host) host = task;
    });
    if (host == 0) return true;
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
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace osc::shm
