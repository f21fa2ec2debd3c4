// Invariant I2 at run time: libosc's own threads never call the host MPI. Each of them marks itself; src/host asserts
// that no marked thread asks for the host's functions.
#pragma once

namespace osc::base {

/// True in the agent's thread and in the network thread.
inline thread_local bool t_helper_thread = false;

}  // namespace osc::base
