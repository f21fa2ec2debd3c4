// Preloaded below all else into programs that run on several hosts: makes MPI_Finalize of MPICH before 4.2 over UCX
// end. Each process there first closes its connections, which may need the peers' progress, and then waits in a barrier
// of the process manager without making any (pmodels/mpich pull request 6596); between hosts every third job hangs for
// ever, with and without libosc. Here the wait in that barrier, a read() after the first connection was closed, makes
// progress. Hosts that do not use UCX never enter this.
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

namespace {

// Of the thread that finalizes: UCX has threads of its own, and they read too.
thread_local void* worker = nullptr;
thread_local bool closing = false;
thread_local bool in_ucx = false;

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

unsigned progress(void* of) {
    static auto* const real = next<unsigned(void*)>("ucp_worker_progress");
    const bool before = in_ucx;
    in_ucx = true;
    const unsigned count = real(of);
    in_ucx = before;
    return count;
}

}  // namespace

extern "C" {

unsigned ucp_worker_progress(void* of) {
    worker = of;
    return progress(of);
}

void* ucp_disconnect_nb(void* endpoint) {
    static auto* const real = next<void*(void*)>("ucp_disconnect_nb");
    const bool before = in_ucx;
    in_ucx = true;
    void* const request = real(endpoint);
    in_ucx = before;
    closing = true;
    return request;
}

void ucp_worker_destroy(void* of) {
    static auto* const real = next<void(void*)>("ucp_worker_destroy");
    closing = false;
    worker = nullptr;
    real(of);
}

ssize_t read(int fd, void* data, size_t bytes) {
    static auto* const real = next<ssize_t(int, void*, size_t)>("read");
    if (closing && worker && !in_ucx) {
        pollfd wait{fd, POLLIN, 0};
        // A millisecond at a time: the peers that still close may need this core.
        while (poll(&wait, 1, 1) == 0)
            progress(worker);
    }
    return real(fd, data, bytes);
}
}
