// Services of the host MPI.
// Build: osc
#include "host/host.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "base/options.h"
#include "host/request.h"
#include "shm/wait.h"

namespace osc::host {

namespace detail {
std::atomic<MPI_Request> g_completed{kNoRequest};
std::atomic<MPI_Request> g_shared{kNoRequest};
constinit thread_local std::atomic<std::uint32_t> t_until_progress{1};
}  // namespace detail

namespace {

bool ends_program(MPI_Errhandler handler) {
    return handler == MPI_ERRORS_ARE_FATAL
#ifdef MPI_ERRORS_ABORT
           || handler == MPI_ERRORS_ABORT
#endif
        ;
}

// Whether the error handler that `get` returns ends the program.
template <class Handle>
bool are_fatal(int (*get)(Handle, MPI_Errhandler*), Handle of) {
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    get(of, &handler);
    const bool fatal = ends_program(handler);
    free_handler(handler);
    return fatal;
}

// Completed requests between two drives of the host.
constexpr std::uint32_t kProgressEvery = 1024;

// Null handles of a host may be addresses, which the loader knows late: constructors of other libraries may call MPI
// before. So these begin as zeros.
constexpr MPI_Comm kNoComm{};

std::mutex g_mutex;
std::atomic<MPI_Comm> g_self{kNoComm};
// A status query of an incomplete request drives the host's progress. This request stays incomplete until release(). A
// probe would be the obvious way, but MPICH's does not advance rendezvous transfers.
MPI_Request g_pending = kNoRequest;
std::atomic<int> g_threads{-1};
constinit base::CoreSharing g_sharing;  // of the last team whose processes share cores
std::atomic<int> g_sessions{0};         // of the program
MPI_Session g_session{};                // libosc's own
bool g_has_session = false;

// A send to MPI_PROC_NULL gives a completed request. Some hosts keep one object for all of them. Others count
// references, and their completed requests must be made one by one.
MPI_Request find_constant_request(MPI_Comm self) {
    MPI_Request made[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    for (MPI_Request& request : made)
        if (real().Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, self, &request) != MPI_SUCCESS) return kNoRequest;
    const MPI_Request handle = made[0];
    const bool shared = made[0] == made[1];
    const bool constant = shared && abi::is_constant_request(handle);
    if (shared) detail::g_shared.store(handle, std::memory_order_relaxed);
    for (MPI_Request& request : made)
        real().Wait(&request, MPI_STATUS_IGNORE);
    return constant ? handle : kNoRequest;
}

// MPICH before 4.1.1 crashes in the second MPI_Session_init of a process (pmodels/mpich issue 6101).
bool may_have_session() {
    int version = 0;
    int subversion = 0;
    real().Get_version(&version, &subversion);
    return version * 100 + subversion >= 401 && sessions() > 0;
}

void end_session() {
    if (std::exchange(g_has_session, false)) real().Session_finalize(&g_session);
}

MPI_Comm self_of_session() {
    const Real& mpi = real();
    MPI_Group one = MPI_GROUP_NULL;
    MPI_Comm self = MPI_COMM_NULL;
    if (mpi.Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &g_session) != MPI_SUCCESS) return MPI_COMM_NULL;
    g_has_session = true;
    if (mpi.Group_from_session_pset(g_session, "mpi://SELF", &one) == MPI_SUCCESS) {
        if (mpi.Comm_create_from_group(one, "libosc", MPI_INFO_NULL, MPI_ERRORS_RETURN, &self) != MPI_SUCCESS)
            self = MPI_COMM_NULL;
        mpi.Group_free(&one);
    }
    if (self == MPI_COMM_NULL) end_session();
    return self;
}

MPI_Comm self_of_world() {
    MPI_Comm self = MPI_COMM_NULL;
    return real().Comm_split(MPI_COMM_SELF, 0, 0, &self) == MPI_SUCCESS ? self : MPI_COMM_NULL;
}

// The group of one makes this a local call, whatever the other processes do. Open MPI copies the parent's attributes
// too, by callbacks of the program.
MPI_Comm self_of_parent(MPI_Comm parent) {
    const Real& mpi = real();
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group one = MPI_GROUP_NULL;
    MPI_Comm self = MPI_COMM_NULL;
    int rank = 0;
    mpi.Comm_rank(parent, &rank);
    mpi.Comm_group(parent, &all);
    mpi.Group_incl(all, 1, &rank, &one);
    if (mpi.Comm_create_group(parent, one, 0, &self) != MPI_SUCCESS) self = MPI_COMM_NULL;
    mpi.Group_free(&one);
    mpi.Group_free(&all);
    return self;
}

}  // namespace

int count_session(int more) {
    return g_sessions.fetch_add(more) + more;
}

int sessions() {
    return g_sessions.load();
}

std::optional<std::string> info_value(MPI_Info info, const char* key) {
    char text[256];
    int found = 0;
    if (info != MPI_INFO_NULL) real().Info_get(info, key, sizeof text - 1, text, &found);
    return found ? std::optional<std::string>(text) : std::nullopt;
}

int least(MPI_Comm comm, int mine, int& result) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = real().Iallreduce(&mine, &result, 1, MPI_INT, MPI_MIN, comm, &request);
    return error == MPI_SUCCESS ? wait(request) : error;
}

int unite(MPI_Comm comm, std::span<std::byte> bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = real().Iallreduce(MPI_IN_PLACE, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, MPI_BOR,
                                        comm, &request);
    return error == MPI_SUCCESS ? wait(request) : error;
}

void free_handler(MPI_Errhandler& handler) {
    if (!ends_program(handler) && handler != MPI_ERRORS_RETURN) real().Errhandler_free(&handler);
}

bool window_errors_are_fatal(MPI_Win window) {
    return are_fatal(real().Win_get_errhandler, window);
}

bool comm_errors_are_fatal(MPI_Comm comm) {
    return are_fatal(real().Comm_get_errhandler, comm);
}

bool world_lives() {
    int begun = 0;
    int ended = 0;
    real().Initialized(&begun);
    real().Finalized(&ended);
    return begun != 0 && ended == 0;
}

MPI_Comm self_comm() {
    const MPI_Comm self = g_self.load(std::memory_order_acquire);
    return self != kNoComm ? self : MPI_COMM_NULL;
}

MPI_Comm self_comm(MPI_Comm parent) {
    if (MPI_Comm made = self_comm(); made != MPI_COMM_NULL) return made;
    const std::lock_guard lock(g_mutex);
    if (MPI_Comm made = self_comm(); made != MPI_COMM_NULL) return made;
    const Real& mpi = real();
    const MPI_Comm self = may_have_session()                 ? self_of_session()
                          : world_lives() && sessions() == 0 ? self_of_world()
                                                             : self_of_parent(parent);
    if (self != MPI_COMM_NULL) {
        mpi.Comm_set_errhandler(self, MPI_ERRORS_RETURN);
        start_empty_request(&g_pending);
        detail::g_completed.store(find_constant_request(self), std::memory_order_relaxed);
    }
    g_self.store(self, std::memory_order_release);
    return self;
}

void outlive_world() {
    const std::lock_guard lock(g_mutex);
    if (self_comm() == MPI_COMM_NULL || g_has_session || !may_have_session()) return;
    const MPI_Comm self = self_of_session();
    if (self == MPI_COMM_NULL) return;
    real().Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    g_self.store(self, std::memory_order_release);  // another thread may use the former one, which ends with the world
}

void progress() {
    if (self_comm() == MPI_COMM_NULL) return;
    int flag = 0;
    real().Request_get_status(g_pending, &flag, MPI_STATUS_IGNORE);
}

bool threads() {
    int level = g_threads.load(std::memory_order_relaxed);
    if (__builtin_expect(level >= 0, 1)) return level != 0;
    int provided = MPI_THREAD_SINGLE;
    real().Query_thread(&provided);
    level = provided == MPI_THREAD_MULTIPLE ? 1 : 0;
    g_threads.store(level, std::memory_order_relaxed);
    return level != 0;
}

int detail::make_completed_request(MPI_Request* request) {
    if (shm::count_down(t_until_progress))
        if (const int error = progress_with_request(); error != MPI_SUCCESS) return error;
    return real().Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, self_comm(), request);
}

static constinit thread_local bool t_fails = false;

int detail::progress_with_request() {
    t_until_progress.store(kProgressEvery, std::memory_order_relaxed);
    progress();
    return std::exchange(t_fails, false) ? MPI_ERR_OTHER : MPI_SUCCESS;
}

void fail_next_request(bool fails) {
    t_fails = fails;
    if (fails) detail::t_until_progress.store(1, std::memory_order_relaxed);
}

void hook_polls(void (*network)()) {
    static std::atomic<void (*)()> g_network{nullptr};
    if (!base::values().host_progress_hook) return;
    if (network != nullptr) g_network.store(network, std::memory_order_relaxed);
    abi::progress().hook([] {
        constexpr int kWhileMessagesAreRare = 7;
        const bool rare = shm::serve_peers();
        void (*const drive)() = g_network.load(std::memory_order_relaxed);
        if (drive != nullptr) drive();
        return rare && drive == nullptr ? kWhileMessagesAreRare : 0;
    });
}

std::string set_wait_policy(const base::CoreSharing& sharing) {
    const std::lock_guard lock(g_mutex);
    if (sharing.crowded()) g_sharing = sharing;
    const bool crowded = g_sharing.crowded();
    const base::Values& options = base::values();
    shm::WaitPolicy policy;
    // If processes share cores, the awaited process may need this core, so the wait yields at once.
    policy.spin = options.spin >= 0 ? static_cast<int>(options.spin) : crowded ? 0 : 2000;
    policy.yields = crowded ? 500 : 50;
    policy.sleep_ms = options.sleep_ms;
    policy.progress = &progress;
    shm::set_wait_policy(policy);
    if (options.spin >= 0) return "waits poll " + std::to_string(options.spin) + " times (OSC_DEBUG=spin)";
    return (crowded ? "waits yield at once: " : "waits spin: ") + g_sharing.text();
}

void release() {
    MPI_Comm self = g_self.exchange(kNoComm);
    if (self == kNoComm || self == MPI_COMM_NULL) return;
    detail::g_completed.store(kNoRequest, std::memory_order_relaxed);
    detail::g_shared.store(kNoRequest, std::memory_order_relaxed);
    real().Comm_free(&self);
    real().Grequest_complete(g_pending);
    real().Wait(&g_pending, MPI_STATUS_IGNORE);
    g_threads.store(-1, std::memory_order_relaxed);
    end_session();
}

}  // namespace osc::host
