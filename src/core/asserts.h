// Checked asserts (OSC_CHECK). The synchronisation calls that take asserts run as if none was given (lock_all: unless
// it finds no false one), so a false assert does no harm, and return a fault that names it. True asserts give no fault.
// MPI 4.1 section 12.5.5.
#pragma once

#include <span>

#include "core/epoch.h"

namespace osc::epoch {

/// MPI_MODE_NOPRECEDE: this process has called no operations since the last fence. NOPRECEDE and NOSUCCEED: all
/// processes give them or none does. MPI_MODE_NOPUT: no process updates this process's memory until the next fence,
/// which reports a violation.
Fault checked_fence(Core& core, unsigned asserts);
/// MPI_MODE_NOPUT: as with a fence; wait or test reports a violation. With MPI_MODE_NOCHECK posts are sent too.
Fault checked_post(Core& core, std::span<const std::uint32_t> origins, unsigned asserts);
/// MPI_MODE_NOCHECK: all local targets have posted. Remote targets are not checked: their posts may be in flight.
Fault checked_start(Core& core, std::span<const std::uint32_t> targets, unsigned asserts);
Fault checked_wait(Core& core);
Fault checked_test(Core& core, bool& done);
/// MPI_MODE_NOCHECK: no process holds a conflicting lock on a local target. Locks of remote targets are not checked;
/// this process acquires them, and waits for them.
Fault checked_lock(Core& core, std::uint32_t rank, sync::LockKind kind, unsigned asserts);
/// The same for all targets; but where no process of the node holds a conflicting lock, it takes no locks, as without
/// checks: many programs keep such an epoch open while other processes lock exclusively.
Fault checked_lock_all(Core& core, unsigned asserts);

}  // namespace osc::epoch
