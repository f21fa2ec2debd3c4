// Runs planned rounds on a window and compares what comes back, and what the window holds, with the model.
#pragma once

#include <memory>

#include "live.h"

namespace diff {

class Runner {
  public:
    /// `jitter`: this rank's own random numbers, for delays and harmless choices.
    Runner(Place& place, Model& model, Random& jitter);

    void run(Round& round);

  private:
    void refresh(const Round& round);
    void fence_round(Round& round);
    void pscw_round(Round& round);
    void lock_round(Round& round);
    void lock_all_round(Round& round);
    void issue_all(Phase& phase, Sync sync, int only_target);
    void flush(Sync sync, int target, bool remote);
    void settle_all();
    void check_memory(const Phase& phase);
    void resolve(Phase& phase);
    void linger();

    Place& place_;
    Model& model_;
    Random& jitter_;
    MPI_Win window_;
    int me_ = 0;
    std::vector<std::unique_ptr<Live>> live_;
};

}  // namespace diff
