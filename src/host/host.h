// Small services of the host MPI that the other rooms need: a private self-communicator for window handles, progress,
// small collectives, thread level, completed requests, error handlers.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core_sharing.h"
#include "base/log.h"
#include "host/real.h"
#include "shm/activity.h"
#include "shm/compare.h"

namespace osc::host {

/// A communicator of this process alone with MPI_ERRORS_RETURN, made on first use and again after release().
/// MPI_COMM_NULL if the host cannot make one. In a program with sessions it belongs to a session of libosc's own, so
/// that every session of the program can end before the others, or with a host of an MPI before 4.1 it is made from the
/// group of `parent`. Else it is made from MPI_COMM_SELF. Local.
MPI_Comm self_comm(MPI_Comm parent);
/// The same, once made.
MPI_Comm self_comm();
/// Makes self_comm() independent of the world from which it was made: the program has begun a session.
void outlive_world();

/// Drives the host's progress once, cheaply (invariant I3).
void progress();

/// Waits for a nonblocking host operation, yielding, and calls meanwhile() in each round. If that returns false, the
/// wait ends while the operation is still in flight. Returns the operation's error code.
template <class F>
int wait(MPI_Request& request, F&& meanwhile) {
    int done = 0;
    shm::WaitWatch watch;
    for (int round = 0;; ++round) {
        const int error = real().Test(&request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || done) return error;
        if (!meanwhile()) return MPI_SUCCESS;
        if (round > 100) {
            watch.look();
            ::sched_yield();
        }
    }
}
inline int wait(MPI_Request& request) {
    return wait(request, [] { return true; });
}

/// Every process's value, by rank; collective over `comm`. A host error code, as the results of the next two.
template <class T>
int gather(MPI_Comm comm, const T& mine, T* all) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = real().Iallgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, comm, &request);
    return error == MPI_SUCCESS ? wait(request) : error;
}

/// Computes the minimum of a value over the processes of `comm`; collective.
int least(MPI_Comm comm, int mine, int& result);

/// Replaces bytes by their union (bitwise or) over the processes of `comm`; collective.
int unite(MPI_Comm comm, std::span<std::byte> bytes);

/// Whether the program runs at MPI_THREAD_MULTIPLE; asked once, after initialisation.
bool threads();

namespace detail {
extern std::atomic<MPI_Request> g_completed;
extern std::atomic<MPI_Request> g_shared;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local std::atomic<std::uint32_t> t_until_progress;
// Not inlined: a fast path only jumps to them.
[[gnu::noinline]] int make_completed_request(MPI_Request* request);
[[gnu::noinline]] int progress_with_request();
}  // namespace detail

/// The value of "none" among request handles.
inline constexpr MPI_Request kNoRequest{};

/// The host's handle of a request that is complete and may be given to the user any number of times; kNoRequest if
/// the host has none, or before self_comm() is made.
inline MPI_Request constant_request() {
    return detail::g_completed.load(std::memory_order_relaxed);
}

/// Whether this thread's next completed_request() fails with MPI_ERR_OTHER: an operation has met a death, which no call
/// has reported yet.
void fail_next_request(bool fails);

/// The host's handle of all completed requests: constant_request(), or one that the host counts the uses of (Intel
/// MPI); kNoRequest if each has its own.
inline MPI_Request shared_request() {
    return detail::g_shared.load(std::memory_order_relaxed);
}

/// A completed request. Drives the host now and then (invariant I3): a program may poll with operations that return
/// such requests, and the host's completion calls make no progress for them. Thread-safe.
inline int completed_request(MPI_Request* request) {
    const MPI_Request constant = constant_request();
    if (__builtin_expect(constant == kNoRequest || request == nullptr, 0))
        return detail::make_completed_request(request);
    *request = constant;
    if (__builtin_expect(shm::count_down(detail::t_until_progress), 0)) return detail::progress_with_request();
    return MPI_SUCCESS;
}

/// Sets how this process waits, by how the processes of a team on its node share cores. A team whose processes share a
/// core has this process yield at once in all teams. Thread-safe. A text for OSC_VERBOSE: the policy and its reason.
std::string set_wait_policy(const base::CoreSharing& sharing);
/// Has a thread that waits in the host serve the processes of the node (shm::serve_peers), and call `network`; null:
/// what an earlier call gave, if any. Thread-safe.
void hook_polls(void (*network)());

/// Adds to the number of the program's sessions that live, and returns it; sessions() returns it too. Thread-safe.
int count_session(int more);
int sessions();

/// A window in messages: window 0xa0000000 "halo", with the name that the program has given it.
inline std::string name_of(MPI_Win window) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    real().Win_get_name(window, name, &length);
    const char* const quote = length > 0 ? "\"" : "";
    return base::format("window %#llx%s%s%s%s", abi::printable(window), length > 0 ? " " : "", quote, name, quote);
}

/// The value of an info key, or its first 255 characters; none also if `info` is MPI_INFO_NULL. Thread-safe.
std::optional<std::string> info_value(MPI_Info info, const char* key);

/// Whether the error handler there ends the program.
bool window_errors_are_fatal(MPI_Win window);
bool comm_errors_are_fatal(MPI_Comm comm);
/// Gives back a handler that a query of the host has returned; predefined ones stay.
void free_handler(MPI_Errhandler& handler);

/// Whether MPI_Init has been called and MPI_Finalize has not ended. Thread-safe.
bool world_lives();

/// Frees this room's communicators, requests and session; when MPI ends. One thread.
void release();

}  // namespace osc::host
