// Collectives over a communicator of the checker. Below MPI_THREAD_MULTIPLE all windows of one group share one: no two
// collectives on it are under way at once. Else each window has its own, because threads may enter the calls on two
// windows in different orders.
#include "plugins/verify/race_exchange.h"

#include <atomic>
#include <climits>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "host/host.h"
#include "plugins/libosc.h"
#include "plugins/verify/ledger.h"
#include "plugins/verify/races.h"

namespace osc {
namespace {

using CheckerComm = std::shared_ptr<MPI_Comm>;  // freed with its last window; null: a window has none

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

CheckerComm without(const Window& window) {
    if (window.core.me == 0)
        plugin::g_libosc.warn_for_group(
            "OSC_CHECK: the checker has no communicator left for a window; conflicts between its processes are not "
            "looked for");
    return nullptr;
}

// The communicators that live, with their groups. One thread.
struct Shared {
    MPI_Group group = MPI_GROUP_NULL;
    CheckerComm::weak_type comm;
};
std::vector<Shared>& shared() {
    static auto* const made = new std::vector<Shared>;
    return *made;
}

CheckerComm find_shared(MPI_Group group) {
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

// The communicator for a window that has just been made of `comm`; collective over `comm`. Null on all processes if one
// has no communicator left, or has made as many as the checker may: one line says so.
CheckerComm comm_for(Window& window, MPI_Comm comm) {
    const host::Real& mpi = host::real();
    // A process may lack what another one still has: a free that an attribute's callback refused.
    auto shared_one = plugin::g_libosc.threads() ? nullptr : find_shared(window.team.group());
    const bool has_room = g_comms.load(std::memory_order_relaxed) < kMostComms;
    const int need = largest(window, comm, shared_one != nullptr ? kHasOne : has_room ? kMakesOne : kHasNoRoom);
    if (need == kHasOne) return shared_one;
    if (need == kHasNoRoom) return without(window);
    // The communicator's own error handler may end the program.
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    mpi.Comm_get_errhandler(comm, &handler);
    mpi.Comm_set_errhandler(comm, plugin::g_libosc.errors_return());
    CheckerComm made;
    MPI_Comm handle = MPI_COMM_NULL;
    // A split copies no attributes and calls no function of the program.
    if (mpi.Comm_split(comm, 0, static_cast<int>(window.core.me), &handle) == MPI_SUCCESS) {
        mpi.Comm_set_errhandler(handle, plugin::g_libosc.errors_return());
        g_comms.fetch_add(1, std::memory_order_relaxed);
        made = CheckerComm(new MPI_Comm(handle), [](MPI_Comm* one) {
            g_comms.fetch_sub(1, std::memory_order_relaxed);
            host::real().Comm_free(one);
            delete one;
        });
    }
    const bool all_have = largest(window, comm, made == nullptr ? 1 : 0) == 0;
    mpi.Comm_set_errhandler(comm, handler);
    plugin::g_libosc.free_handler(handler);
    if (!all_have) return without(window);
    if (!plugin::g_libosc.threads()) {
        Shared one;
        if (mpi.Comm_group(*made, &one.group) == MPI_SUCCESS) {
            one.comm = made;
            shared().insert(shared().begin(), one);
        }
    }
    return made;
}

using check::Message;

constexpr std::uint64_t kLeastPage = 4096;

// Waits for a collective; false if it failed or a process died. The host may then still use the buffers.
bool finish(Window& window, MPI_Request& request) {
    return plugin::g_libosc.await_all(request, {&window});
}

struct ExchangeBuffers {
    explicit ExchangeBuffers(std::size_t processes)
        : sent(processes), got(processes), sent_at(processes), got_at(processes) {}
    std::vector<int> sent, got, sent_at, got_at;  // bytes, and where they lie
    Message out, in;
};

// check::Races::Exchange.
bool exchange(Window& window, MPI_Comm comm, const std::vector<Message>& out, std::vector<Message>& in) {
    const host::Real& mpi = host::real();
    const std::size_t processes = window.core.size;
    auto buffers = std::make_unique<ExchangeBuffers>(processes);
    ExchangeBuffers& all = *buffers;
    for (std::size_t i = 0; i < processes; ++i)
        if (out[i].size() <= INT_MAX / processes) {  // what is larger is not compared, and all sums fit an int
            all.sent[i] = static_cast<int>(out[i].size());
            all.out.insert(all.out.end(), out[i].begin(), out[i].end());
        }
    MPI_Request request = MPI_REQUEST_NULL;
    bool done = mpi.Ialltoall(all.sent.data(), 1, MPI_INT, all.got.data(), 1, MPI_INT, comm, &request) == MPI_SUCCESS &&
                finish(window, request);
    if (done) {
        std::exclusive_scan(all.sent.begin(), all.sent.end(), all.sent_at.begin(), 0);
        std::exclusive_scan(all.got.begin(), all.got.end(), all.got_at.begin(), 0);
        all.in.resize(static_cast<std::size_t>(all.got_at.back() + all.got.back()));
        done = mpi.Ialltoallv(all.out.data(), all.sent.data(), all.sent_at.data(), MPI_BYTE, all.in.data(),
                              all.got.data(), all.got_at.data(), MPI_BYTE, comm, &request) == MPI_SUCCESS &&
               finish(window, request);
    }
    if (!done) {
        static_cast<void>(buffers.release());
        return false;
    }
    in.resize(processes);
    for (std::size_t i = 0; i < processes; ++i)
        in[i].assign(all.in.begin() + all.got_at[i], all.in.begin() + all.got_at[i] + all.got[i]);
    return true;
}

void gather_units(Window& window, MPI_Comm comm) {
    auto units = std::make_unique<std::vector<std::uint64_t>>(window.core.size);
    (*units)[window.core.me] = static_cast<std::uint64_t>(window.unit);
    MPI_Request request = MPI_REQUEST_NULL;
    if (host::real().Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, units->data(), 1, MPI_UINT64_T, comm, &request) ==
            MPI_SUCCESS &&
        finish(window, request))
        window.core.ledger->know_units(std::move(*units));
    else
        static_cast<void>(units.release());
}

check::Promises promises_of(const Window& window) {
    check::Promises promises;
    promises.one_op = window.promised_ops;
    for (const auto& [key, value] : window.info) {
        if (key == "accumulate_ops") promises.same_op = value == "same_op";
        if (key == "accumulate_ordering") promises.ordered = value.find("waw") != std::string::npos;
    }
    return promises;
}

}  // namespace

void release_checker_comms() {
    for (Shared& one : shared())
        host::real().Group_free(&one.group);
    shared().clear();
}

void watch_races(Window& window, MPI_Comm comm) {
    const CheckerComm own = comm_for(window, comm);
    if (own != nullptr) gather_units(window, *own);
    window.core.ledger->watch_races(
        {.me = window.core.me,
         .processes = window.core.size,
         .promises = promises_of(window),
         .addresses = window.flavor == MPI_WIN_FLAVOR_DYNAMIC,
         .threads = plugin::g_libosc.threads(),
         .exchange = [&window, own](const std::vector<Message>& out, std::vector<Message>& in) {
             return own != nullptr && exchange(window, *own, out, in);
         }});
}

void watch_memory(Window& window) {
    const auto bytes = static_cast<std::size_t>(window.bytes);
    if (window.core.ledger->races() == nullptr || window.flavor != MPI_WIN_FLAVOR_ALLOCATE || bytes == 0) return;
    for (const auto& [key, value] : window.info)  // a view keeps the alignment up to that of a page
        if (key == "mpi_minimum_memory_alignment" && std::strtoull(value.c_str(), nullptr, 10) > kLeastPage) return;
    std::byte* const view = plugin::g_libosc.map_view(window.core.mine().offset, bytes);
    auto guard = view != nullptr ? check::PageGuard::make(view, static_cast<std::byte*>(window.base), bytes) : nullptr;
    if (guard == nullptr) {
        if (view != nullptr) plugin::g_libosc.unmap_view(view);
        plugin::g_libosc.warn_for_group(
            "OSC_CHECK: no mapping left for a window; its loads and stores are not looked at");
        return;
    }
    window.program_view = view;
    window.core.ledger->races()->watch_memory(std::move(guard));
}

void compare_before_free(Window& window) {
    if (window.core.ledger->races() == nullptr || plugin::g_libosc.may_free(window.core) != Fault::None) return;
    if (plugin::g_libosc.meet(window)) window.core.ledger->compare(true);
    window.core.ledger->stop_comparing();
}

}  // namespace osc
