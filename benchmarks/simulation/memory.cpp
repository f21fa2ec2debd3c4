// What libosc keeps for a window and for its communicator.
#include "core/core.h"
#include "net/network_stack.h"
#include "net/origin/remote_window.h"
#include "net/origin/stream.h"
#include "net/process_table.h"
#include "protocols.h"
#include "shm/control.h"

namespace simulation {

Memory memory(const Job& job) {
    const std::uint32_t here = std::min(job.per_node, job.processes);
    // Team: its part of the node's process table, and an entry for each process of the node.
    const auto table = static_cast<double>(table_bytes(job));
    constexpr std::size_t kOfMate = sizeof(std::shared_ptr<int>) + sizeof(std::uint32_t);
    // Network: the connection, and its place in a hash table.
    constexpr std::size_t kOfPeer = sizeof(osc::net::Connection) + 4 * sizeof(void*);
    return {static_cast<double>(osc::shm::ControlTable::bytes_for(here, job.processes)) / here,
            static_cast<double>(sizeof(osc::net::Stream) + sizeof(osc::Target)), static_cast<double>(kOfPeer),
            table / here + static_cast<double>(here * kOfMate)};
}

}  // namespace simulation
