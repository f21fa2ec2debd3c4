// What libosc keeps for a window and for its communicator.
#include "agent/book.h"
#include "agent/network.h"
#include "protocols.h"
#include "strategy/core.h"
#include "transport/net/far.h"
#include "transport/net/stream.h"
#include "transport/shm/control.h"

namespace simulation {

Memory memory(const Job& job) {
    const std::uint32_t here = std::min(job.per_node, job.processes);
    // Team: its part of the node's book, and an entry for each process of the node.
    const auto book = static_cast<double>(osc::net::Book::bytes_for(job.processes, job.nodes()));
    constexpr std::size_t kOfMate = sizeof(std::shared_ptr<int>) + sizeof(std::uint32_t);
    // Network: the connection, and its place in a hash table.
    constexpr std::size_t kOfPeer = sizeof(osc::net::Connection) + 4 * sizeof(void*);
    return {static_cast<double>(osc::shm::Slot::bytes_for(here, job.processes)) / here,
            static_cast<double>(sizeof(osc::net::Stream) + sizeof(osc::Peer)), static_cast<double>(kOfPeer),
            book / here + static_cast<double>(here * kOfMate)};
}

}  // namespace simulation
