// MPI_Comm_split_type. The host splits first, so that it checks the arguments. If processes on one machine got
// different communicators, they are split again by machine, and the new communicator is tested: its team must be able
// to map the memory of all its processes. If that fails, the host's result stands.
#include <algorithm>
#include <span>
#include <vector>

#include "abi/abi.h"
#include "base/options.h"
#include "host/host.h"
#include "shm/machine.h"
#include "window/nodes.h"
#include "window/settings.h"
#include "window/team.h"

namespace osc {
namespace {

// The data that the processes exchange.
struct NodeRecord {
    std::int32_t node;   // the first process of its node by the host
    std::int32_t final;  // 1: the host's result stands for the whole node
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
    return guided && host::info_value(split.info, "mpi_hw_resource_type") == "mpi_shared_memory";
}

int size_of(MPI_Comm comm) {
    int size = 0;
    if (comm != MPI_COMM_NULL) host::real().Comm_size(comm, &size);
    return size;
}

// Gathers the records of all processes; a host error code.
int gather(const Split& split, MPI_Comm by_host, bool info_given, std::span<NodeRecord> records) {
    int rank = 0;
    const host::Real& mpi = host::real();
    mpi.Comm_rank(split.comm, &rank);
    // A process with MPI_UNDEFINED, or without a communicator from the host, shares memory with no other.
    NodeRecord mine{rank, by_host == MPI_COMM_NULL ? 1 : 0, by_host == MPI_COMM_NULL ? 0 : shm::machine_number()};
    if (info_given) {
        // Older hosts split nodes further by info keys. The user asked for that, so the result stands.
        MPI_Comm whole = MPI_COMM_NULL;
        const int type = split.type == MPI_UNDEFINED ? split.type : int{MPI_COMM_TYPE_SHARED};
        if (const int error = mpi.Comm_split_type(split.comm, type, 0, MPI_INFO_NULL, &whole); error != MPI_SUCCESS)
            return error;
        if (size_of(by_host) < size_of(whole)) mine.final = 1;
        if (whole != MPI_COMM_NULL) mpi.Comm_free(&whole);
    }
    if (by_host != MPI_COMM_NULL) {
        if (const int error = host::least(by_host, rank, mine.node); error != MPI_SUCCESS) return error;
    }
    return host::gather(split.comm, mine, records.data());
}

// Whether all processes of `comm` can map each other's memory.
int prove(MPI_Comm comm, bool& proved) {
    Team* team = nullptr;
    const char* why = nullptr;
    proved = false;
    const int error = Team::of(comm, true, false, team, why);
    if (error == MPI_ERR_NO_MEM) return MPI_SUCCESS;  // on all of `comm`
    if (error != MPI_SUCCESS) return error;
    proved = team->not_served() == nullptr && team->local_ranks() == nullptr;
    team->release();
    return MPI_SUCCESS;
}

// Replaces `by_host` by a communicator of this process's machine, if that is larger and its processes share memory.
int grow(const Split& split, std::span<NodeRecord> records, MPI_Comm& by_host, bool& grown) {
    const host::Real& mpi = host::real();
    int rank = 0;
    mpi.Comm_rank(split.comm, &rank);
    const std::int32_t node = records[static_cast<std::size_t>(rank)].node;
    const auto members =
        std::count_if(records.begin(), records.end(), [&](const NodeRecord& record) { return record.node == node; });
    const bool is_final = std::any_of(records.begin(), records.end(), [&](const NodeRecord& record) {
        return record.node == node && record.final != 0;
    });
    const bool grows = !is_final && members > size_of(by_host);
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
    if (!base::insist([&] { return difference_in(split.comm).empty(); }))
        return mpi.Comm_split_type(split.comm, split.type, split.key, split.info, result);
    std::vector<NodeRecord> records;
    std::vector<std::int32_t> by_machine;
    bool asks = false;
    const Fault fault = base::attempt([&] {
        asks = asks_for_shared_memory(split);
        records.resize(static_cast<std::size_t>(size_of(split.comm)));
        by_machine.resize(records.size());
        return Fault::None;
    });
    // Some processes may give MPI_UNDEFINED, or have no memory, so the processes decide together.
    const bool keeps_host = fault != Fault::None || base::values().split_type == "host" || abi::simulates_nodes();
    const int mine[] = {asks ? 1 : 0, keeps_host ? 1 : 0, split.info != MPI_INFO_NULL ? 1 : 0};
    int all[] = {0, 0, 0};
    MPI_Request request = MPI_REQUEST_NULL;
    int error = mpi.Iallreduce(mine, all, 3, MPI_INT, MPI_MAX, split.comm, &request);
    if (error == MPI_SUCCESS) error = host::wait(request);
    if (error != MPI_SUCCESS) return error;
    const auto& [wants_shared_memory, host_decides, info_given] = all;
    MPI_Comm by_host = MPI_COMM_NULL;
    error = mpi.Comm_split_type(split.comm, split.type, split.key, split.info, &by_host);
    if (error != MPI_SUCCESS) return error;
    if (wants_shared_memory != 0 && host_decides == 0) {
        error = gather(split, by_host, info_given != 0, records);
        if (error == MPI_SUCCESS && join_nodes(std::span(records), std::span(by_machine)))
            error = grow(split, records, by_host, grown);
        if (error != MPI_SUCCESS) {
            if (by_host != MPI_COMM_NULL) mpi.Comm_free(&by_host);
            return error;
        }
    }
    *result = by_host;
    return MPI_SUCCESS;
}

}  // namespace osc
