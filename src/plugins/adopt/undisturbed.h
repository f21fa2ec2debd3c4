// Keeps a thread from being interrupted: no signal handler runs in it, and it cannot be cancelled.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace osc::shm {

/// While an object of this class exists, signals wait in the calling thread, and a cancellation waits too. free() and
/// munmap() are no cancellation points, though what libosc does in them makes system calls that are. Objects nest; the
/// thread that made one destroys it.
class Undisturbed {
  public:
    Undisturbed() : state_(begin()) {}
    ~Undisturbed() { end(state_); }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

    /// The same for sections that no scope encloses.
    struct State {
        sigset_t signals;
        int cancellation;
    };
    static State begin() {
        State state{};
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &state.signals);
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state.cancellation);
        return state;
    }
    static void end(const State& state) {
        int now = 0;
        ::pthread_setcancelstate(state.cancellation, &now);
        ::pthread_sigmask(SIG_SETMASK, &state.signals, nullptr);
    }

  private:
    State state_;
};

}  // namespace osc::shm
