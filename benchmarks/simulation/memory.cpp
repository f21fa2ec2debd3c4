// What libosc keeps for a window and for its communicator.
#include "protocols.h"
#include "strategy/core.h"
#include "transport/am/network_stack.h"
#include "transport/am/origin/remote_window.h"
#include "transport/am/origin/stream.h"
#include "transport/am/process_table.h"
#include "transport/shm/control.h"

namespace simulation {

Memory memory(const Job& job) {
    const std::uint32_t here = std::min(job.per_node, job.processes);
    // Team: its part of the node's process table, and an entry for each process of the node.
    const auto table = static_cast<double>(osc::am::ProcessTable::bytes_for(job.processes, job.nodes()));
    constexpr std::size_t kOfMate = sizeof(std::shared_ptr<int>) + sizeof(std::uint32_t);
    // Network: the connection, and its place in a hash table.
    constexpr std::size_t kOfPeer = sizeof(osc::am::Connection) + 4 * sizeof(void*);
    return {static_cast<double>(osc::shm::ControlTable::bytes_for(here, job.processes)) / here,
            static_cast<double>(sizeof(osc::am::Stream) + sizeof(osc::Peer)), static_cast<double>(kOfPeer),
            table / here + static_cast<double>(here * kOfMate)};
}

}  // namespace simulation
