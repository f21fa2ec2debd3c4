// The functions of requests that the host polls. The status that a host passes to poll() and wait() may be invalid, so
// they do not write to it. While the application waits, only they may drive the host, which may have to send a peer the
// rest of a message (invariant I3).
// Build: osc
#include "host/request.h"

#include <sched.h>

#include "host/host.h"

namespace osc::host {
namespace {

constexpr int kDriveEvery = 16;   // polls
constexpr int kYieldAfter = 256;  // polls in a row without a completion

thread_local int t_looks = 0;  // polls in a row without a completion

Awaited& awaited(void* state) {
    return *static_cast<Awaited*>(state);
}

int poll(void* state, MPI_Status*) {
    awaited(state).look();
    if (++t_looks % kDriveEvery == 0) progress();
    if (t_looks > kYieldAfter) ::sched_yield();
    return MPI_SUCCESS;
}

int wait(int count, void** states, double, MPI_Status*) {
    shm::t_call = "MPI_Wait";
    for (int i = 0; i < count; ++i)
        awaited(states[i]).await();
    return MPI_SUCCESS;
}

// Source, tag and count mean nothing (MPI 4.1 section 12.3.5).
int query_nothing(void*, MPI_Status* status) {
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    real().Status_set_elements(status, MPI_BYTE, 0);
    real().Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

int query(void* state, MPI_Status* status) {
    query_nothing(state, status);
    return awaited(state).result();
}

int release_nothing(void*) {
    return MPI_SUCCESS;
}

int release_state(void* state) {
    awaited(state).released();
    return MPI_SUCCESS;
}

// An operation in flight cannot be cancelled: the request completes normally (section 3.8.4).
int cancel(void*, int) {
    return MPI_SUCCESS;
}

}  // namespace

int start_request(Awaited& what, MPI_Request* request) {
    return abi::progress().start_request({&query, &release_state, &cancel, &poll, &wait}, &what, request);
}

void complete_request(MPI_Request request) {
    t_looks = 0;
    abi::progress().complete_request(real().Grequest_complete, request);
}

int start_empty_request(MPI_Request* request) {
    return real().Grequest_start(&query_nothing, &release_nothing, &cancel, nullptr, request);
}

int give_own_handle(MPI_Request* request) {
    MPI_Request shared = *request;
    if (shared != shared_request()) return MPI_SUCCESS;
    real().Wait(&shared, MPI_STATUS_IGNORE);
    const int error = start_empty_request(request);
    return error == MPI_SUCCESS ? real().Grequest_complete(*request) : error;
}

bool request_errors_are_fatal() {
    int world_model = 0;
    real().Initialized(&world_model);
    return !world_model || comm_errors_are_fatal(MPI_COMM_WORLD);
}

}  // namespace osc::host
