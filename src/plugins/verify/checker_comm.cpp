// Makes and shares the checker's communicators.
#include "plugins/verify/checker_comm.h"

#include <atomic>
#include <vector>

#include "host/host.h"
#include "plugins/libosc.h"

namespace osc {
namespace {

// Makes errors of a communicator return while it lives: its own handler may end the program.
class ErrorsReturn {
  public:
    explicit ErrorsReturn(MPI_Comm comm) : comm_(comm) {
        host::real().Comm_get_errhandler(comm, &handler_);
        host::real().Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    ~ErrorsReturn() {
        host::real().Comm_set_errhandler(comm_, handler_);
        plugin::g_libosc.free_handler(handler_);
    }
    ErrorsReturn(const ErrorsReturn&) = delete;
    ErrorsReturn& operator=(const ErrorsReturn&) = delete;

  private:
    const MPI_Comm comm_;
    MPI_Errhandler handler_ = MPI_ERRORS_ARE_FATAL;
};

// The least and the most that a process can do for a window; the largest value of the processes counts.
enum Need : int { kHasOne, kMakesOne, kHasNoRoom };

// The largest value of the processes; kHasNoRoom if one of them died.
int largest(Window& window, MPI_Comm comm, int value) {
    return plugin::g_libosc.largest(window.team, comm, {&value, 1}) == MPI_SUCCESS ? value : kHasNoRoom;
}

// The host has room for about 2,040 windows and communicators together, which are the program's: windows beyond so many
// communicators of the checker go without one.
constexpr int kMostComms = 100;
constinit std::atomic<int> g_comms{0};

std::shared_ptr<CheckerComm> without(const Window& window) {
    if (window.me == 0)
        plugin::g_libosc.warn_for_group(
            "OSC_CHECK: the checker has no communicator left for a window; conflicts between its processes are not "
            "looked for");
    return nullptr;
}

// The communicators that live, with their groups. One thread.
struct Shared {
    MPI_Group group = MPI_GROUP_NULL;
    std::weak_ptr<CheckerComm> comm;
};
std::vector<Shared>& shared() {
    static auto* const made = new std::vector<Shared>;
    return *made;
}

std::shared_ptr<CheckerComm> find_shared(MPI_Group group) {
    const host::Real& mpi = host::real();
    std::erase_if(shared(), [&](Shared& one) {
        if (!one.comm.expired()) return false;
        mpi.Group_free(&one.group);
        return true;
    });
    for (const Shared& one : shared()) {
        int same = MPI_UNEQUAL;
        if (mpi.Group_compare(group, one.group, &same) == MPI_SUCCESS && same == MPI_IDENT) return one.comm.lock();
    }
    return nullptr;
}

}  // namespace

void release_checker_comms() {
    for (Shared& one : shared())
        host::real().Group_free(&one.group);
    shared().clear();
}

CheckerComm::CheckerComm(MPI_Comm handle) : handle_(handle) {
    g_comms.fetch_add(1, std::memory_order_relaxed);
}

CheckerComm::~CheckerComm() {
    g_comms.fetch_sub(1, std::memory_order_relaxed);
    host::real().Comm_free(&handle_);
}

std::shared_ptr<CheckerComm> CheckerComm::of(Window& window, MPI_Comm comm) {
    const host::Real& mpi = host::real();
    // A process may lack what another one still has: a free that an attribute's callback refused.
    auto shared_one = plugin::g_libosc.threads() ? nullptr : find_shared(window.team.group());
    const bool has_room = g_comms.load(std::memory_order_relaxed) < kMostComms;
    const int need = largest(window, comm, shared_one != nullptr ? kHasOne : has_room ? kMakesOne : kHasNoRoom);
    if (need == kHasOne) return shared_one;
    if (need == kHasNoRoom) return without(window);
    std::shared_ptr<CheckerComm> made;
    {
        const ErrorsReturn scope(comm);
        MPI_Comm handle = MPI_COMM_NULL;
        // A split copies no attributes and calls no function of the program.
        if (mpi.Comm_split(comm, 0, static_cast<int>(window.me), &handle) == MPI_SUCCESS) {
            mpi.Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
            made = std::make_shared<CheckerComm>(handle);
        }
        if (largest(window, comm, made == nullptr ? 1 : 0) != 0) return without(window);
    }
    if (!plugin::g_libosc.threads()) {
        Shared one;
        if (mpi.Comm_group(made->handle(), &one.group) == MPI_SUCCESS) {
            one.comm = made;
            shared().insert(shared().begin(), one);
        }
    }
    return made;
}

}  // namespace osc
