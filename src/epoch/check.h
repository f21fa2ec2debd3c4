// Checked asserts (OSC_CHECK): the synchronisation calls that take asserts, done as without them, so that a false one
// does no harm, and with a fault at the end that says which assert was false. True asserts give no fault.
// MPI 4.1, 12.5.5.
#pragma once

#include <span>

#include "epoch/epoch.h"

namespace osc::epoch {

/// MPI_MODE_NOPRECEDE: this process has called no operations since the last fence; NOPRECEDE and NOSUCCEED: given by
/// all processes or none. MPI_MODE_NOPUT: nobody updates this process's window until the next fence, which tells.
Fault checked_fence(Core& core, unsigned asserts);
/// MPI_MODE_NOPUT: as with a fence, told by wait or test. Posts are sent with MPI_MODE_NOCHECK too.
Fault checked_post(Core& core, std::span<const std::uint32_t> origins, unsigned asserts);
/// MPI_MODE_NOCHECK: all targets on this node have posted. A post of another node may be on its way still.
Fault checked_start(Core& core, std::span<const std::uint32_t> targets, unsigned asserts);
Fault checked_wait(Core& core);
Fault checked_test(Core& core, bool& done);
/// MPI_MODE_NOCHECK: nobody holds the lock of a target on this node so that this process would have to wait. Of other
/// nodes' locks nothing is known here: they are taken, and waited for.
Fault checked_lock(Core& core, std::uint32_t target, sync::LockKind kind, unsigned asserts);
Fault checked_lock_all(Core& core, unsigned asserts);

}  // namespace osc::epoch
