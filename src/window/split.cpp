// The host splits first, so that it judges the arguments. If processes on one machine got different communicators,
// they are split again by machine, and the new communicator is proved: its team maps the memory of all of its
// processes. Where that fails, the host's answer stands.
#include "window/split.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "config/options.h"
#include "host/host.h"
#include "host/nodes.h"
#include "transport/shm/machine.h"
#include "window/nodes.h"
#include "window/team.h"

namespace osc {
namespace {

// What a process gives the others.
struct NodeRecord {
    std::int32_t node;     // the first process of its node by the host
    std::int32_t settled;  // the host's answer stands for its whole node
    std::uint64_t machine;
};

bool asks_for_shared_memory(const Split& split) {
    if (split.type == MPI_COMM_TYPE_SHARED) return true;
    bool guided = false;
#ifdef MPI_COMM_TYPE_HW_GUIDED
    guided = guided || split.type == MPI_COMM_TYPE_HW_GUIDED;
#endif
#ifdef MPI_COMM_TYPE_RESOURCE_GUIDED
    guided = guided || split.type == MPI_COMM_TYPE_RESOURCE_GUIDED;
#endif
    if (!guided || split.info == MPI_INFO_NULL) return false;
    char text[64];
    int found = 0;
    host::real().Info_get(split.info, "mpi_hw_resource_type", sizeof text - 1, text, &found);
    return found && std::strcmp(text, "mpi_shared_memory") == 0;
}

int size_of(MPI_Comm comm) {
    int size = 0;
    if (comm != MPI_COMM_NULL) host::real().Comm_size(comm, &size);
    return size;
}

// The cards of all processes; empty if the host fails, with its error code.
int gather(const Split& split, MPI_Comm by_host, bool info_given, std::vector<NodeRecord>& cards) {
    int size = 0;
    int rank = 0;
    const host::Real& mpi = host::real();
    mpi.Comm_size(split.comm, &size);
    mpi.Comm_rank(split.comm, &rank);
    // A process with MPI_UNDEFINED, or to which the host gives nothing, shares with none.
    const bool apart = split.type == MPI_UNDEFINED;
    NodeRecord mine{rank, by_host == MPI_COMM_NULL ? 1 : 0, by_host == MPI_COMM_NULL ? 0 : shm::machine_number()};
    if (info_given) {
        // Older hosts split nodes further by info keys: that is what the user wants.
        MPI_Comm whole = MPI_COMM_NULL;
        const int type = apart ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED;
        if (const int error = mpi.Comm_split_type(split.comm, type, 0, MPI_INFO_NULL, &whole); error != MPI_SUCCESS)
            return error;
        if (size_of(by_host) < size_of(whole)) mine.settled = 1;
        if (whole != MPI_COMM_NULL) mpi.Comm_free(&whole);
    }
    if (by_host != MPI_COMM_NULL) {
        if (const int error = host::least(by_host, rank, mine.node); error != MPI_SUCCESS) return error;
    }
    cards.resize(static_cast<std::size_t>(size));
    MPI_Request request = MPI_REQUEST_NULL;
    const int error =
        mpi.Iallgather(&mine, sizeof mine, MPI_BYTE, cards.data(), sizeof mine, MPI_BYTE, split.comm, &request);
    return error == MPI_SUCCESS ? host::wait(request) : error;
}

// Whether all processes of `comm` can map each other's memory.
int prove(MPI_Comm comm, bool& proved) {
    Team* team = nullptr;
    const char* why = nullptr;
    if (const int error = Team::of(comm, true, false, team, why); error != MPI_SUCCESS) return error;
    proved = team->not_served() == nullptr && team->places() == nullptr;
    team->release();
    return MPI_SUCCESS;
}

// Replaces `by_host` by a communicator of this process's machine, if that is larger and proved.
int grow(const Split& split, std::span<NodeRecord> cards, MPI_Comm& by_host, bool& grown) {
    const host::Real& mpi = host::real();
    int rank = 0;
    mpi.Comm_rank(split.comm, &rank);
    const std::int32_t node = cards[static_cast<std::size_t>(rank)].node;
    const auto members =
        std::count_if(cards.begin(), cards.end(), [&](const NodeRecord& card) { return card.node == node; });
    const bool settled = std::any_of(cards.begin(), cards.end(),
                                     [&](const NodeRecord& card) { return card.node == node && card.settled != 0; });
    const bool grows = !settled && members > size_of(by_host);
    MPI_Comm joined = MPI_COMM_NULL;
    int error = mpi.Comm_split(split.comm, grows ? node : MPI_UNDEFINED, split.key, &joined);
    if (error != MPI_SUCCESS || joined == MPI_COMM_NULL) return error;
    error = prove(joined, grown);
    if (error == MPI_SUCCESS && grown && split.info != MPI_INFO_NULL) error = mpi.Comm_set_info(joined, split.info);
    MPI_Comm& dropped = error == MPI_SUCCESS && grown ? by_host : joined;
    mpi.Comm_free(&dropped);
    if (error == MPI_SUCCESS && grown) by_host = joined;
    return error;
}

}  // namespace

int split_type(const Split& split, MPI_Comm* result, bool& grown) {
    const host::Real& mpi = host::real();
    grown = false;
    // Only all processes together know what is asked for: some may give MPI_UNDEFINED.
    const bool leaves = config::values().split_type == "host" || host::nodes_made_up();
    const int mine[] = {asks_for_shared_memory(split) ? 1 : 0, leaves ? 1 : 0, split.info != MPI_INFO_NULL ? 1 : 0};
    int all[] = {0, 0, 0};
    MPI_Request request = MPI_REQUEST_NULL;
    int error = mpi.Iallreduce(mine, all, 3, MPI_INT, MPI_MAX, split.comm, &request);
    if (error == MPI_SUCCESS) error = host::wait(request);
    if (error != MPI_SUCCESS) return error;
    const auto& [asked, left, info_given] = all;
    MPI_Comm by_host = MPI_COMM_NULL;
    error = mpi.Comm_split_type(split.comm, split.type, split.key, split.info, &by_host);
    if (error != MPI_SUCCESS) return error;
    if (asked != 0 && left == 0) {
        std::vector<NodeRecord> cards;
        error = gather(split, by_host, info_given != 0, cards);
        if (error == MPI_SUCCESS && join_nodes(std::span(cards))) error = grow(split, cards, by_host, grown);
        if (error != MPI_SUCCESS) {
            if (by_host != MPI_COMM_NULL) mpi.Comm_free(&by_host);
            return error;
        }
    }
    *result = by_host;
    return MPI_SUCCESS;
}

}  // namespace osc
