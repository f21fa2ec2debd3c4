// The wait for a process that is inside a section of bounded work: it holds a stripe or the guard of a lock's queue, or
// changes a table under a sequence lock. It leaves the section within microseconds unless the system runs another
// process, the process is stopped, or it died inside: then the shared memory says for ever that it is there. So every
// such wait asks now and then whether the process lives.
//
// A process inside a section waits for no message, so these waits drive neither the host MPI nor the network (I3).
#pragma once

#include <sched.h>

#include <ctime>

#include "shm/wait.h"

namespace osc::shm {

/// One wait of one thread.
class SectionWait {
  public:
    /// Between two looks at the shared memory: spins, then yields, then sleeps. True after each 100 ms of sleep: the
    /// caller asks whether the process lives.
    bool pause() {
        if (round_ == 0) spin_ = wait_policy().spin;
        if (round_ < spin_ + kYields) {
            if (round_++ < spin_)
                cpu_relax();
            else
                ::sched_yield();
            return false;
        }
        const timespec moment{0, 1000000};
        ::nanosleep(&moment, nullptr);
        slept_ = (slept_ + 1) % kAskEvery;
        return slept_ == 0;
    }

  private:
    static constexpr int kYields = 1000;
    static constexpr int kAskEvery = 100;  // sleeps
    int spin_ = 0;
    int round_ = 0;
    int slept_ = 0;
};

}  // namespace osc::shm
