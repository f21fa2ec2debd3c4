// Hears of the host MPI looking for what has come, so that libosc's network is looked at by the same loop: a process
// that waits inside the host would otherwise share its core with libosc's thread, and each message for it would cost
// two changes of threads. Only an optimisation: without it the thread does all.
#pragma once

namespace osc::host {

/// From now on `called` is called by each look of the host for messages, by any thread of the application, perhaps
/// under locks of the host: it must not call MPI nor wait. False where this host gives no occasion. Thread-safe.
bool hook_progress(void (*called)());

/// UCX's ucp_worker_progress as the host calls it, with what hook_progress() has added. Only where the host imports it.
unsigned progress_of(void* worker);

}  // namespace osc::host
