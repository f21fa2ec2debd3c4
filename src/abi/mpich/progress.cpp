// MPICH's requests that it polls, and hooks in MPICH over UCX and in Intel MPI: libosc replaces entries of the host's
// import table. Other libraries' calls do not change, and libosc exports no names for them.
// Build: start
#include "abi/mpich/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/imports.h"
#include "shm/activity.h"
#include "shm/wait.h"

namespace osc::abi::mpich {
namespace {

// The function `name` that the host's calls reach; null if the host does not import it. Thread-safe.
void* imported(const char* name) {
    return base::imported_by(host::host_symbol("PMPI_Initialized"), name);
}

// Redirects the host's calls of `name`. Calls of this function must not overlap.
bool redirect(const char* name, void* by) {
    return base::replace_import(host::host_symbol("PMPI_Initialized"), name, by);
}

// MPICH over UCX polls for messages with ucp_worker_progress, a public function of UCX. The hook replaces it by a
// function that also drives libosc's network.

using UcpProgress = unsigned (*)(void* worker);
constexpr const char* kUcpProgress = "ucp_worker_progress";

std::atomic<UcpProgress> g_progress{nullptr};  // UCX's own
std::atomic<int (*)()> g_called{nullptr};
std::atomic<int> g_passing{0};  // of the next polls

// Counts a poll of the host's, and has libosc's part of it done: how many of the next polls may pass without.
int polled() {
    std::atomic<std::uint64_t>& polls = shm::my_activity().host_polls;
    polls.store(polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    int (*const called)() = g_called.load(std::memory_order_relaxed);
    return called != nullptr ? called() : 0;
}

// Called through the table's entry, which its readers load without synchronisation: stores before the entry's may
// become visible a little later.
unsigned count_progress(void* worker) {
    UcpProgress progress = nullptr;
    while ((progress = g_progress.load(std::memory_order_acquire)) == nullptr) {
    }
    const unsigned events = progress(worker);
    // Lost counts of two threads do no harm.
    if (const int passing = g_passing.load(std::memory_order_relaxed); passing > 0) {
        g_passing.store(passing - 1, std::memory_order_relaxed);
        return events;
    }
    g_passing.store(polled(), std::memory_order_relaxed);
    return events;
}

// ucp_worker_progress as the host calls it, with the hook. Only if the host imports that function.
unsigned progress_of(void* worker) {
    static const auto function = reinterpret_cast<UcpProgress>(imported(kUcpProgress));
    return g_progress.load(std::memory_order_acquire) != nullptr ? count_progress(worker) : function(worker);
}

// Intel MPI polls by functions of its own. With I_MPI_THREAD_YIELD=2 each of its waits calls sched_yield after
// I_MPI_SPIN_COUNT polls, collectives on a node after I_MPI_COLL_SHM_PROGRESS_SPIN_COUNT, and nothing else calls it
// (2021.18). libosc sets them while the host starts, unless the user has chosen how waits yield, and takes the calls. A
// poll takes some 200 ns, so none passes without libosc's part.

struct Setting {
    const char* name;
    const char* value;
    bool stands;  // until the host has started
};
Setting g_settings[] = {{"I_MPI_THREAD_YIELD", "2", false},
                        {"I_MPI_SPIN_COUNT", "1", false},
                        {"I_MPI_COLL_SHM_PROGRESS_SPIN_COUNT", "5", false}};

std::mutex g_starting;  // two threads may start sessions
std::atomic<bool> g_takes_yields{false};
bool g_passes_on = false;  // all calls: the user has chosen them, or ranks wait for cores

bool is_intel() {
    using GetVersion = int (*)(char* text, int* length);
    const auto get = reinterpret_cast<GetVersion>(host::host_symbol("PMPI_Get_library_version"));
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    return get != nullptr && get(text, &length) == MPI_SUCCESS && std::strstr(text, "Intel(R) MPI") != nullptr;
}

bool has_more_ranks_than_cores() {
    const char* const ranks = ::getenv("MPI_LOCALNRANKS");  // from the launcher
    return ranks != nullptr && std::strtol(ranks, nullptr, 10) > ::sysconf(_SC_NPROCESSORS_ONLN);
}

// Where the launcher does not tell the ranks of the node, the first window does.
int yielded() {
    constexpr std::uint32_t kRarely = 256;  // of calls that cost 10 ns each, and the system's 300
    static std::atomic<std::uint32_t> calls{0};
    const std::uint32_t before = calls.load(std::memory_order_relaxed);
    calls.store(before + 1, std::memory_order_relaxed);  // lost counts of two threads do no harm
    polled();
    return g_passes_on || shm::wait_policy().spin == 0 || before % kRarely == 0 ? ::sched_yield() : 0;
}

void host_begins() {
    const std::lock_guard lock(g_starting);
    if (imported("sched_yield") == nullptr || !is_intel()) return;
    const char* const chosen = ::getenv("I_MPI_THREAD_YIELD");
    g_passes_on = chosen != nullptr || has_more_ranks_than_cores();
    if ((chosen != nullptr && std::strcmp(chosen, "2") != 0) || ::getenv("I_MPI_WAIT_MODE") != nullptr ||
        !redirect("sched_yield", reinterpret_cast<void*>(&yielded)))
        return;
    if (chosen == nullptr)
        for (Setting& setting : g_settings)
            setting.stands = ::getenv(setting.name) == nullptr && ::setenv(setting.name, setting.value, 0) == 0;
    g_takes_yields.store(true, std::memory_order_relaxed);
}

void host_began(int) {
    const std::lock_guard lock(g_starting);
    for (Setting& setting : g_settings)
        if (std::exchange(setting.stands, false)) ::unsetenv(setting.name);
}

// MPI_Finalize of MPICH before 4.2 over UCX: each process closes its connections, which may need the progress of its
// peers, and then waits in a barrier of the process manager without making any (pmodels/mpich pull request 6596). A
// process that reaches the barrier first keeps its peers from closing, for ever.
//
// The host imports the functions by which it closes connections, makes progress, waits for its process manager (read)
// and destroys its workers. Replacements follow the finalizing thread through these steps: from the first closed
// connection to the first destroyed worker, a read() that finds nothing makes progress.

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

bool hook(int (*called)()) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (called != nullptr) g_called.store(called, std::memory_order_relaxed);
    if (g_progress.load(std::memory_order_relaxed) != nullptr) return true;
    auto* const function = reinterpret_cast<UcpProgress>(imported(kUcpProgress));
    if (function == nullptr) return g_takes_yields.load(std::memory_order_relaxed);
    g_progress.store(function, std::memory_order_release);
    if (redirect(kUcpProgress, reinterpret_cast<void*>(&count_progress))) return true;
    g_progress.store(nullptr, std::memory_order_relaxed);
    return false;
}

void finalize() {
    g_disconnect = reinterpret_cast<Disconnect>(imported("ucp_disconnect_nb"));
    g_destroy = reinterpret_cast<Destroy>(imported("ucp_worker_destroy"));
    if (g_disconnect == nullptr || g_destroy == nullptr || imported(kUcpProgress) == nullptr ||
        imported("read") == nullptr)
        return;
    // If one replacement fails, the others have no effect without it.
    if (redirect("ucp_worker_destroy", reinterpret_cast<void*>(&destroy)) &&
        redirect("read", reinterpret_cast<void*>(&read_with_progress)) &&
        redirect(kUcpProgress, reinterpret_cast<void*>(&progress)))
        redirect("ucp_disconnect_nb", reinterpret_cast<void*>(&disconnect));
}

// MPICH (by src/mpi/request of 4.0.2) calls the poll function in MPI_Wait, in the calls for some or any, and in all
// tests; it calls the wait function in MPI_Waitall, for one request at a time. It holds no lock meanwhile. The status
// that it passes may be invalid. In MPI_Wait and MPI_Waitall only these functions drive the host, which may have to
// send a peer the rest of a message (invariant I3).
using Start = int(MPI_Grequest_query_function*, MPI_Grequest_free_function*, MPI_Grequest_cancel_function*,
                  decltype(PolledRequest::poll), decltype(PolledRequest::wait), void* state, MPI_Request* request);

// Some libraries have no profiling name of it.
Start* polled_start() {
    static auto* const start = [] {
        void* const profiled = host::host_symbol("PMPIX_Grequest_start");
        return reinterpret_cast<Start*>(profiled != nullptr ? profiled : host::host_symbol("MPIX_Grequest_start"));
    }();
    return start;
}

bool polls_requests() {
    return polled_start() != nullptr;
}

int start_request(const PolledRequest& functions, void* state, MPI_Request* request) {
    return polled_start()(functions.query, functions.free, functions.cancel, functions.poll, functions.wait, state,
                          request);
}

int complete_request(int (*complete)(MPI_Request), MPI_Request request) {
    return complete(request);
}

}  // namespace

const Progress kProgress = {&polls_requests, &start_request, &complete_request, &hook,
                            &host_begins,    &host_began,    &finalize};

}  // namespace osc::abi::mpich
