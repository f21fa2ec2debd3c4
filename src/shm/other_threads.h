// The other threads of this process: whether there are any, and their stop while memory is exchanged
// (src/plugins/adopt), because no thread may store into it meanwhile.
#pragma once

#include <signal.h>

namespace osc::shm {

/// Whether a thread of the program runs beside the caller. libosc's threads and the host MPI's do not count.
bool has_other_threads();

/// No signal handler of the program runs while an object of this class exists, unless a thread of libosc meets a fault:
/// signals wait in the caller's thread, and the host MPI's threads, which could run handlers too, stand in a handler of
/// this class. One object at a time.
class Handlers {
  public:
    Handlers();
    ~Handlers();
    Handlers(const Handlers&) = delete;
    Handlers& operator=(const Handlers&) = delete;

    /// False if a thread did not stop within a tenth of a second.
    bool wait() const { return stopped_; }

  private:
    bool stop();

    sigset_t before_;
    struct sigaction action_before_ = {};
    int signal_ = 0;  // 0: no thread was asked to stop
    bool stopped_ = true;
};

}  // namespace osc::shm
