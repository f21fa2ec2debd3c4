// libosc's own threads. Invariant I2 at run time: they never call the host MPI. Each of them marks itself; src/host
// asserts that no marked thread asks for the host's functions.
#pragma once

#include <pthread.h>

#include <csignal>
#include <cstddef>

#include "base/assert.h"

namespace osc::base {

/// True in the agent's thread and in the network thread.
inline thread_local bool t_helper_thread = false;

/// Starts a marked thread that calls kRun of `object` on a stack of `stack` bytes; 0, or the system's error. The thread
/// takes no signal: a handler of the application may call MPI, or jump.
template <auto kRun, class T>
int start_helper_thread(pthread_t& thread, std::size_t stack, T* object) {
    const auto main = [](void* self) -> void* {
        t_helper_thread = true;
        serve_or_end([&] { (static_cast<T*>(self)->*kRun)(); });
        return nullptr;
    };
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, stack);
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = ::pthread_create(&thread, &attributes, main, object);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
    return error;
}

}  // namespace osc::base
