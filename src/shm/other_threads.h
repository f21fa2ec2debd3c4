// The other threads of this process: whether there are any, and their stop while memory is exchanged
// (src/plugins/adopt), because no thread may store into it meanwhile.
#pragma once

#include <signal.h>

namespace osc::shm {

/// Whether a thread of the program runs beside the caller. libosc's threads and the host MPI's do not count.
bool has_other_threads();

/// Around a call that starts the host MPI: threads that begin meanwhile are the host's, if the program had no thread
/// that could have begun them. One object at a time.
class HostStarts {
  public:
    HostStarts();
    ~HostStarts();
    HostStarts(const HostStarts&) = delete;
    HostStarts& operator=(const HostStarts&) = delete;

  private:
    const bool alone_;
};

/// What stop_handlers() has changed.
struct StoppedHandlers {
    sigset_t before;
    struct sigaction action_before = {};
    int signal = 0;  // 0: no thread was asked to stop
    bool stopped = true;
};
void stop_handlers(StoppedHandlers& state);
void release_handlers(StoppedHandlers& state);

/// No signal handler of the program runs while an object of this class exists, unless a thread of libosc meets a fault:
/// signals wait in the caller's thread, and the host MPI's threads, which could run handlers too, stand in a handler of
/// this file. One object at a time.
class Handlers {
  public:
    Handlers() { stop_handlers(state_); }
    ~Handlers() { release_handlers(state_); }
    Handlers(const Handlers&) = delete;
    Handlers& operator=(const Handlers&) = delete;

    /// False if a thread did not stop within a tenth of a second.
    bool wait() const { return state_.stopped; }

  private:
    StoppedHandlers state_;
};

}  // namespace osc::shm
