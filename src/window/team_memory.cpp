// The arenas of a node's processes: this process opens them, or their owners pass their descriptors.
#include <sched.h>

#include <cerrno>
#include <chrono>

#include "base/options.h"
#include "host/host.h"
#include "host/nodes.h"
#include "local/cma.h"
#include "shm/fd_exchange.h"
#include "window/team.h"

namespace osc {
namespace {

// A process asks the others for their arenas for at most this long; each answers as soon as it runs.
constexpr std::chrono::seconds kPatience{5};

}  // namespace

std::uint32_t Team::first_hidden(std::uint32_t from) const {
    while (from < local_size() && (rank_at(from) == me_ || processes_[from]->arena.reachable()))
        ++from;
    return from;
}

int Team::map_shared(std::uint64_t offset) {
    shared_ = reinterpret_cast<TeamShared*>(map(leader(), offset, sizeof(TeamShared)));
    if (shared_ != nullptr) return kAll;
    return errno == ENOMEM ? kNoMemory : kNone;
}

// A process that cannot open an arena asks its owner for it, one owner after the other. All processes listen before any
// of them asks, so a failed connection is final. All answer until a reduction has ended, which each process enters when
// it has all arenas.
int Team::pass_arenas(MPI_Comm comm, const std::vector<std::uint64_t>& meetings, std::uint64_t shared_offset,
                      int& visibility) {
    shm::FdExchange passing(meetings[me_]);
    if (const int error = host::least(comm, passing.listening() ? kAll : kNone, visibility);
        error != MPI_SUCCESS || visibility == kNone)
        return error;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    visibility = kAll;
    for (std::uint32_t at = first_hidden(0); at < local_size() && visibility == kAll;) {
        passing.serve();
        host::progress();
        const shm::Fetched got = passing.fetch(meetings[rank_at(at)], processes_[at]->arena);
        if (got == shm::Fetched::Yes) {
            at = first_hidden(at);
        } else if (got == shm::Fetched::Never || std::chrono::steady_clock::now() > end) {
            visibility = kNone;
        } else {
            ::sched_yield();
        }
    }
    passing.abandon();
    if (visibility == kAll) visibility = map_shared(shared_offset);
    const int mine = visibility;
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = host::real().Iallreduce(&mine, &visibility, 1, MPI_INT, MPI_MIN, comm, &request);
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
    if (base::values().cma == "off") return false;
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
    for (std::uint32_t at = 0; at < local_size(); ++at)
        if (rank_at(at) != me_ && !cma_reaches(rank_at(at))) return false;
    return true;
}

}  // namespace osc
