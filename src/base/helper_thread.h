// libosc's own threads. Invariant I2 at run time: they never call the host MPI. Each of them marks itself; src/host
// asserts that no marked thread asks for the host's functions.
#pragma once

#include <pthread.h>

#include <csignal>
#include <initializer_list>

#include "base/assert.h"

namespace osc::base {

/// True in the agent's thread and in the network thread.
inline thread_local bool t_helper_thread = false;

/// Blocks signals in the calling thread and returns its mask of before. The signals that a thread's own instruction
/// raises stay: for one that is blocked the kernel kills the process, and a program may handle the faults of its pages.
inline sigset_t block_signals() {
    sigset_t signals;
    sigset_t before;
    ::sigfillset(&signals);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        ::sigdelset(&signals, own);
    ::pthread_sigmask(SIG_BLOCK, &signals, &before);
    return before;
}

inline void restore_signals(const sigset_t& before) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Starts a marked thread that calls kRun of `object`; 0, or the system's error. Of the program's handlers it runs only
/// those of its own faults, because others may call MPI, or jump. Its stack is that of the program's threads: these
/// handlers need room on it, and so do the program's thread-local variables.
template <auto kRun, class T>
int start_helper_thread(pthread_t& thread, T* object) {
    const auto main = [](void* self) -> void* {
        t_helper_thread = true;
        try {
            (static_cast<T*>(self)->*kRun)();
        } catch (const std::exception& exception) {
            cannot_serve(exception);
        }
        return nullptr;
    };
    const sigset_t before = block_signals();
    const int error = ::pthread_create(&thread, nullptr, main, object);
    restore_signals(before);
    return error;
}

}  // namespace osc::base
