// Entry points that start and end MPI. What libosc has of the host ends before the host does, behind the program's own
// callbacks at MPI_Finalize (MPI 4.1 section 11.2.4), and is made anew if the program starts MPI again by a session.
// Build: start
#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "abi/abi.h"
#include "api/plugins.h"
#include "api/serve.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/warn.h"
#include "host/datatype.h"
#include "net/network_stack.h"
#include "shm/other_threads.h"
#include "stats/record.h"
#include "trace/recorder.h"
#include "window/checker.h"
#include "window/request.h"
#include "window/settings.h"

namespace osc {
namespace {

constexpr std::int64_t kLook = 100000000;  // ns between two looks for dead processes

bool g_end_follows = false;  // an attribute of MPI_COMM_SELF ends libosc's part of the world model

// Ends windows that the user did not free, without the other processes, which may have ended. Their host windows would
// keep the host from closing its connections. Their memory stays, because other processes may still access it; the list
// refers to it.
void end_windows() {
    static auto& left = *new std::vector<Window*>;
    for (Window* window : live_windows()) {
        left.push_back(window);
        MPI_Win handle = window->handle;
        window->core.complete_ops();
        freeing(handle);
        unregister_window(handle);
        host::real().Win_free(&handle);
    }
}

// The host is about to end.
void end() {
    end_windows();
    if (g_checker != nullptr) g_checker->end();
    request::reap();
    host::release_types();
    Team::release_keyval();
    host::release();
    serve_threads();
}

// Whether each process has loaded the reports: one that has not would never enter the collectives of the others.
bool all_have_reports() {
    static int mine = 0;  // the host may use them for ever if a process dies
    static int least = 0;
    mine = g_reports != nullptr ? 1 : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    if (host::real().Iallreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request) != MPI_SUCCESS ||
        !await_all(request, live_windows()))
        return true;  // the reports find that out, and say what they have
    if (least == 0 && mine != 0)
        base::warn_for_group("OSC_STATS, OSC_TRACE: no report, because some processes lack libosc_reports.so");
    return least != 0;
}

void report_job() {
    if (base::values().disable || (base::values().stats.empty() && base::values().trace.empty())) return;
    if (difference_in_job().empty() && !all_have_reports()) return;
    if (stats::enabled()) g_reports->statistics();
    if (trace::enabled()) g_reports->timeline();
}

constexpr std::uint64_t kJobLine = 0x6a6f626c696e65;  // the claim of it, among the processes of a node

// The line about the whole job that OSC_VERBOSE=1 prints.
bool may_print_job() {
    static std::atomic<bool> done{false};
    return base::verbose("job") && !done.exchange(true) && base::claim_for_job(kJobLine);
}

// The job line of a job that has made no window.
void describe_job_without_windows() {
    int rank = 0;
    host::real().Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && may_print_job())
        base::say("libosc %s over %s: no window was made", OSC_VERSION_TEXT, host::describe_host().c_str());
}

void report() {
    if (g_checker != nullptr) g_checker->report_at_end();
    report_job();
    if (base::verbose("counters")) report_counters();
    describe_job_without_windows();
}

void end_world() {
    report();
    if (host::sessions() == 0) end();
    if (base::values().host_progress_hook) abi::progress().hook_finalize();
    shm::note_finalize();
}

template <class Start>
int start_host(Start&& start) {
    const shm::HostStarts notes_threads;
    if (base::values().host_progress_hook) abi::progress().host_begins();
    const int error = start();
    abi::progress().host_began(error);
    return error;
}

int self_is_freed(MPI_Comm, int, void*, void*) {
    end_world();
    return MPI_SUCCESS;
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF first, the latest before the earlier ones. The program can set
// none before this one.
int begin_world(int error) {
    const host::Real& mpi = host::real();
    int keyval = MPI_KEYVAL_INVALID;
    if (error != MPI_SUCCESS) return error;
    // In the standard's ABI the first use asks the host, which the program may have answer otherwise later.
    [[maybe_unused]] const MPI_Errhandler known = MPI_ERRORS_RETURN;
    g_end_follows = mpi.Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &self_is_freed, &keyval, nullptr) == MPI_SUCCESS &&
                    mpi.Comm_set_attr(MPI_COMM_SELF, keyval, nullptr) == MPI_SUCCESS;
    return MPI_SUCCESS;
}

}  // namespace

void describe_job(const Window& window) {
    if (window.core.me != 0 || !may_print_job()) return;
    const net::Job* const job = window.team.job();
    std::string ways = window.team.local_size() > 1 || job == nullptr ? "load and store on a node" : "";
    if (job != nullptr)
        ways.append(ways.empty() ? "" : ", ")
            .append("libfabric's ")
            .append(net::NetworkStack::mine().endpoint().provider())
            .append(" between nodes");
    base::say("libosc %s over %s: %u ranks on %zu node%s, %s", OSC_VERSION_TEXT, host::describe_host().c_str(),
              window.core.size, job != nullptr ? job->leaders.size() : std::size_t{1}, job != nullptr ? "s" : "",
              ways.c_str());
}

bool await_all(MPI_Request& request, const std::vector<Window*>& windows) {
    const auto any_dead = [&] {
        return std::any_of(windows.begin(), windows.end(), [](Window* window) { return window->core.any_dead() >= 0; });
    };
    std::int64_t next = now_ns();
    bool dead = false;
    const int error = host::wait(request, [&] {
        if (void (*const network)() = shm::wait_policy().network; network != nullptr) network();
        if (now_ns() < next) return true;
        next = now_ns() + kLook;
        dead = any_dead();
        return !dead;
    });
    return error == MPI_SUCCESS && !dead;
}

namespace entry {

int Init(int* argc, char*** argv) {
    return begin_world(start_host([&] { return host::real().Init(argc, argv); }));
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
    return begin_world(start_host([&] { return host::real().Init_thread(argc, argv, required, provided); }));
}

int Finalize() {
    // A program that has started MPI past libosc finds its windows ended in the callbacks.
    if (!g_end_follows) end_world();
    return host::real().Finalize();
}

int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
    if (host::real().Session_init == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION;
    host::count_session(1);
    const int error = start_host([&] { return host::real().Session_init(info, errhandler, session); });
    if (error != MPI_SUCCESS) {
        host::count_session(-1);
        return error;
    }
    host::outlive_world();
    return MPI_SUCCESS;
}

int Session_finalize(MPI_Session* session) {
    if (host::real().Session_finalize == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION;
    if (host::count_session(-1) == 0 && !host::world_lives()) end();
    const int error = host::real().Session_finalize(session);
    if (error != MPI_SUCCESS) host::count_session(1);
    return error;
}

}  // namespace entry
}  // namespace osc
