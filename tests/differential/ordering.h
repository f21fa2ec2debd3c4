// Locks that all processes ask for in one order, over several windows and by several threads: nothing may deadlock, and
// each lock excludes.
#pragma once

#include "random.h"

namespace diff {

/// Two windows, whose locks may be deferred; each process takes a random subset of all their locks in ascending order
/// and counts under them. Collective.
void ordered_locks(Random& random, Random& jitter);

/// A process's lock is held until another thread of the process that asks for it has had a free lock. At least three
/// processes and MPI_THREAD_MULTIPLE; otherwise it does nothing. Collective.
void blocked_thread(Random& random);

}  // namespace diff
