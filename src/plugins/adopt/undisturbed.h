// Keeps a thread from being interrupted: no other thread or process interrupts it by a signal or a cancellation.
#pragma once

#include <pthread.h>
#include <signal.h>

#include "base/helper_thread.h"

namespace osc::shm {

/// While an object of this class exists, signals (base::block_signals) wait in the calling thread, and a cancellation
/// waits too. free() and munmap() are no cancellation points, though what libosc does in them makes system calls that
/// are. Objects nest; the thread that made one destroys it.
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
        State state{base::block_signals(), 0};
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state.cancellation);
        return state;
    }
    static void end(const State& state) {
        int now = 0;
        ::pthread_setcancelstate(state.cancellation, &now);
        base::restore_signals(state.signals);
    }

  private:
    State state_;
};

}  // namespace osc::shm
