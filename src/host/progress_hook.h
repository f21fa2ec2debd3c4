// Hooks the host MPI's progress function, so that a thread inside the host also drives libosc's network. Otherwise a
// process that waits inside the host shares its core with libosc's network thread, and each message costs two context
// switches. Only an optimisation: without the hook the network thread handles all messages.
#pragma once

namespace osc::host {

/// Makes each of the host's polls for messages call `called`, in any thread of the application and perhaps under locks
/// of the host: `called` must not call MPI and must not wait; null: what an earlier call gave, if any. Also counts the
/// polls in shm::Activity. False if this host has no function to hook. Thread-safe.
bool hook_progress(void (*called)());

/// ucp_worker_progress as the host calls it, with the hook. Only if the host imports that function.
unsigned progress_of(void* worker);

}  // namespace osc::host
