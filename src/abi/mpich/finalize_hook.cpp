// MPI_Finalize of MPICH before 4.2 over UCX: each process closes its connections, which may need the progress of its
// peers, and then waits in a barrier of the process manager without making any (pmodels/mpich pull request 6596). A
// process that reaches the barrier first keeps its peers from closing, for ever.
//
// The host imports the functions by which it closes connections, makes progress, waits for its process manager (read)
// and destroys its workers. Replacements follow the finalizing thread through these steps: from the first closed
// connection to the first destroyed worker, a read() that finds nothing makes progress.
// Build: start
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#include "abi/mpich/ucx.h"

namespace osc::abi {
namespace {

using Disconnect = void* (*)(void* endpoint);
using Destroy = void (*)(void* worker);

Disconnect g_disconnect = nullptr;  // UCX's own
Destroy g_destroy = nullptr;

// Another thread of the host may call read() too.
thread_local bool t_closing = false;

// The workers that MPI_Finalize has driven and not destroyed. Never freed: a program may call MPI_Finalize in a static
// object's destructor.
struct Workers {
    std::mutex mutex;
    std::vector<void*> all;
};

Workers& workers() {
    static Workers& instance = *new Workers;
    return instance;
}

unsigned progress(void* worker) {
    {
        Workers& known = workers();
        const std::lock_guard lock(known.mutex);
        if (std::find(known.all.begin(), known.all.end(), worker) == known.all.end()) known.all.push_back(worker);
    }
    return progress_of(worker);
}

void* disconnect(void* endpoint) {
    t_closing = true;
    return g_disconnect(endpoint);
}

void destroy(void* worker) {
    t_closing = false;
    {
        Workers& known = workers();
        const std::lock_guard lock(known.mutex);
        std::erase(known.all, worker);
    }
    g_destroy(worker);
}

void progress_all() {
    std::vector<void*> all;
    {
        Workers& known = workers();
        const std::lock_guard lock(known.mutex);
        all = known.all;
    }
    for (void* worker : all)
        progress_of(worker);
}

// True once a read() of the descriptor does not block; false after a millisecond or a signal.
bool readable(int descriptor) {
    pollfd wait{descriptor, POLLIN, 0};
    const int ready = ::poll(&wait, 1, 1);
    return ready > 0 || (ready < 0 && errno != EINTR);
}

bool blocks(int descriptor) {
    const int flags = ::fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

ssize_t read_with_progress(int descriptor, void* data, size_t bytes) {
    // The wait sleeps in poll() instead of polling for progress: peers that still close may need this core.
    if (t_closing && blocks(descriptor))
        while (!readable(descriptor))
            progress_all();
    return ::read(descriptor, data, bytes);
}

}  // namespace

void hook_finalize() {
    g_disconnect = reinterpret_cast<Disconnect>(imported("ucp_disconnect_nb"));
    g_destroy = reinterpret_cast<Destroy>(imported("ucp_worker_destroy"));
    if (g_disconnect == nullptr || g_destroy == nullptr || imported("ucp_worker_progress") == nullptr ||
        imported("read") == nullptr)
        return;
    // If one replacement fails, the others have no effect without it.
    if (redirect("ucp_worker_destroy", reinterpret_cast<void*>(&destroy)) &&
        redirect("read", reinterpret_cast<void*>(&read_with_progress)) &&
        redirect("ucp_worker_progress", reinterpret_cast<void*>(&progress)))
        redirect("ucp_disconnect_nb", reinterpret_cast<void*>(&disconnect));
}

}  // namespace osc::abi
