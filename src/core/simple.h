// Simple operations that the fast paths did not perform, and the decision to batch them: docs/STRATEGIES.md#batches.
#pragma once

#include "core/core.h"
#include "op/simple.h"

namespace osc::epoch {

/// Performs a simple operation on `rank`, adds it to a message or to a batch. False if the general path must perform
/// it, with nothing done except that the target may be open: the operation gains nothing here, it is not allowed, or
/// its target is not known or not open. In windows whose strategies allow fast paths.
bool try_simple(Core& core, int rank, const op::Simple& what);

/// Performs the batched operations of a window. Every synchronisation call but the fast paths of MPI_Win_lock and
/// MPI_Win_unlock, which refuse a target with such operations, comes here first: it ends a run. A fault stays for
/// Core::complete_ops().
void end_run(Core& core);
inline void end_run_if_any(Core& core) {
    if (__builtin_expect(core.run.length != 0, 0)) end_run(core);
}

/// Performs the batched operations, ends the run and opens a target for the fast paths again.
void leave_batch(Core& core, Target& target);

}  // namespace osc::epoch
