// Small services of the host MPI that the other rooms need: a private self-communicator for window handles, progress,
// waiting for a collective, thread level, completed requests, error reports.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <cstdint>

#include "host/real.h"
#include "transport/shm/compare.h"

namespace osc::host {

/// A communicator of this process alone with MPI_ERRORS_RETURN, made from the group of `parent` on first use (so it
/// exists in a program that uses only sessions). MPI_COMM_NULL if the host cannot make one. Local.
MPI_Comm self_comm(MPI_Comm parent);
/// The same, once made.
MPI_Comm self_comm();

/// Drives the host's progress once, cheaply (invariant I3).
void progress();

/// Waits for a nonblocking host operation, yielding, and calls `meanwhile` in each round, which gives the wait up by
/// returning false: the operation is still under way then. Returns its error code.
template <class F>
int wait(MPI_Request& request, F&& meanwhile) {
    int done = 0;
    for (int round = 0;; ++round) {
        const int error = real().Test(&request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || done) return error;
        if (!meanwhile()) return MPI_SUCCESS;
        if (round > 100) ::sched_yield();
    }
}
inline int wait(MPI_Request& request) {
    return wait(request, [] { return true; });
}

/// Whether the program runs at MPI_THREAD_MULTIPLE; asked once, after initialisation.
bool threads();

namespace detail {
extern std::atomic<MPI_Request> g_completed;
extern std::atomic<std::uint32_t> g_until_progress;
int make_completed_request(MPI_Request* request);
int progress_with_request();
}  // namespace detail

/// The host's handle of a request that is complete already and may be handed out any number of times; MPI_REQUEST_NULL
/// if the host has none, or before self_comm() is made.
inline MPI_Request constant_request() {
    return detail::g_completed.load(std::memory_order_relaxed);
}

/// A request that is complete already. Drives the host now and then (invariant I3): a program may poll with operations
/// that give such requests, and the host's completion calls do nothing for them. Thread-safe.
inline int completed_request(MPI_Request* request) {
    const MPI_Request constant = constant_request();
    if (__builtin_expect(constant == MPI_REQUEST_NULL || request == nullptr, 0))
        return detail::make_completed_request(request);
    *request = constant;
    if (__builtin_expect(shm::count_down(detail::g_until_progress), 0)) return detail::progress_with_request();
    return MPI_SUCCESS;
}

/// Sets how this process waits: `node_ranks` processes share the cores that this one may use.
void set_wait_policy(int node_ranks);

/// Releases what this room holds; at MPI_Finalize.
void release();

}  // namespace osc::host
