// The memory of a node's processes: whose arena this process can open, and arenas passed where it cannot.
#include <sched.h>

#include <chrono>

#include "config/options.h"
#include "host/host.h"
#include "host/nodes.h"
#include "transport/cma/cma.h"
#include "transport/shm/passing.h"
#include "window/team.h"

namespace osc {
namespace {

// For this long a process asks the others for their arenas: each of them answers as soon as it runs.
constexpr std::chrono::seconds kPatience{5};

}  // namespace

std::uint32_t Team::first_hidden(std::uint32_t from) const {
    while (from < mates() && (rank_at(from) == me_ || processes_[from]->arena.reachable()))
        ++from;
    return from;
}

int Team::map_shared(std::uint64_t offset) {
    shared_ = reinterpret_cast<TeamShared*>(map(leader(), offset, sizeof(TeamShared)));
    return shared_ != nullptr ? kAll : kNone;
}

// Those who miss arenas ask their owners for them, one after the other. All listen before anybody asks, so that who
// finds nobody need not wait; and all answer until the last has what it needs, which a reduction tells.
int Team::pass_arenas(MPI_Comm comm, const std::vector<std::uint64_t>& meetings, std::uint64_t shared_offset,
                      int& reach) {
    shm::Passing passing(meetings[me_]);
    if (const int error = host::least(comm, passing.listening() ? kAll : kNone, reach);
        error != MPI_SUCCESS || reach == kNone)
        return error;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    reach = kAll;
    for (std::uint32_t at = first_hidden(0); at < mates() && reach == kAll;) {
        passing.serve();
        host::progress();
        const shm::Fetched got = passing.fetch(meetings[rank_at(at)], processes_[at]->arena);
        if (got == shm::Fetched::Yes) {
            at = first_hidden(at);
        } else if (got == shm::Fetched::Never || std::chrono::steady_clock::now() > end) {
            reach = kNone;
        } else {
            ::sched_yield();
        }
    }
    passing.abandon();
    if (reach == kAll) reach = map_shared(shared_offset);
    const int mine = reach;
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = host::real().Iallreduce(&mine, &reach, 1, MPI_INT, MPI_MIN, comm, &request);
    return error == MPI_SUCCESS ? host::wait(request,
                                             [&] {
                                                 passing.serve();
                                                 return true;
                                             })
                                : error;
}

std::byte* Team::map(std::uint32_t rank, std::uint64_t offset, std::size_t bytes) const {
    if (rank == me_) return shm::Arena::mine().at(offset);
    return process(rank).arena.map(offset, bytes);
}

void Team::unmap(std::uint32_t rank, std::uint64_t offset, std::byte* address, std::size_t bytes) const {
    if (rank != me_) process(rank).arena.unmap(offset, address, bytes);
}

bool Team::cma_reaches(std::uint32_t rank) const {
    if (config::values().cma == "off") return false;
    Process& process = this->process(rank);
    int known = process.cma.load(std::memory_order_relaxed);
    if (known < 0) {
        const shm::ArenaAddress& address = process.arena.address();
        known = address.pid > 0 && cma::reachable(address.pid, address.probe, address.token) ? 1 : 0;
        process.cma.store(known, std::memory_order_relaxed);
    }
    return known != 0;
}

bool Team::cma_reaches_all() const {
    for (std::uint32_t at = 0; at < mates(); ++at)
        if (rank_at(at) != me_ && !cma_reaches(rank_at(at))) return false;
    return true;
}

}  // namespace osc
