// All processes request locks in the same order, over several windows and in several threads: there must be no
// deadlock, and each lock excludes.
#pragma once

#include "random.h"

namespace diff {

/// A step. Two windows, whose locks may be deferred; each process takes a random subset of all their locks in ascending
/// order and counts under them. Collective.
void ordered_locks(Random& random, Random& jitter);

/// A step. A lock is held until a second thread of the process that requests it has acquired a free lock: the first
/// thread must not block the second. Needs three processes and MPI_THREAD_MULTIPLE; otherwise it does nothing.
/// Collective.
void blocked_thread(Random& random);

}  // namespace diff
