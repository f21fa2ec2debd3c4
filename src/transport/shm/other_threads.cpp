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

// Calls f(thread number, owner) for every thread but the caller; false if /proc does not list them.
template <class F>
bool each_other_thread(F&& f) {
    DIR* const tasks = ::opendir("/proc/self/task");
    if (tasks == nullptr) return false;
    const long me = ::gettid();
    bool host_seen = false;
    while (const dirent* const entry = ::readdir(tasks)) {
        const long task = std::atol(entry->d_name);
        if (task == 0 || task == me) continue;
        char path[64];
        std::snprintf(path, sizeof path, "/proc/self/task/%ld/comm", task);
        char name[32] = {};
        const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;  // it has ended
        const bool read = ::read(fd, name, sizeof name - 1) > 0;
        ::close(fd);
        const bool host = read && !host_seen && std::strcmp(name, "async\n") == 0;
        host_seen = host_seen || host;
        f(task, host ? Owner::Host : read && std::strncmp(name, "osc-", 4) == 0 ? Owner::Libosc : Owner::Program);
    }
    ::closedir(tasks);
    return true;
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

bool Handlers::stop() {
    g_stop.store(true);
    each_other_thread([&](long task, Owner owner) {
        if (owner != Owner::Host) return;
        if (signal_ == 0) {
            signal_ = unused_signal();
            struct sigaction action = {};
            action.sa_handler = stand;
            action.sa_flags = SA_RESTART;
            ::sigfillset(&action.sa_mask);
            if (signal_ == 0 || ::sigaction(signal_, &action, &action_before_) != 0) return;
        }
        if (::syscall(SYS_tgkill, ::getpid(), task, signal_) == 0) ++asked_;
    });
    return await(asked_);
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
