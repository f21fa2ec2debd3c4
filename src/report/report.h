// The hang reporter: says why a wait inside libosc does not end. OSC_HANG_REPORT, docs/TROUBLESHOOTING.md.
#pragma once

#include "shm/activity.h"

namespace osc::report {

/// Starts to watch the waits of this process, as OSC_HANG_REPORT says, and takes SIGUSR1 if the program has no handler
/// for it. The first call counts; the arena must be open. Thread-safe.
void start();

/// Prints what the wait of `note`, which is the calling thread's, is for. Takes up to two seconds.
void explain(const shm::WaitNote& note);

}  // namespace osc::report
