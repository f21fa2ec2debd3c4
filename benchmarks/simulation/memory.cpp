// What libosc keeps for a window and for its communicator.
#include "agent/network.h"
#include "epoch/core.h"
#include "protocols.h"
#include "transport/net/far.h"
#include "transport/net/stream.h"
#include "transport/shm/control.h"

namespace simulation {

Memory memory(const Job& job) {
    const std::uint32_t here = std::min(job.per_node, job.processes);
    const double processes = job.processes;
    // Team: a card, a token, the node and the place of each process, and an entry for those of this node; Network: a
    // connection to each process of another node, with its place in a hash table.
    constexpr std::size_t kOfProcess =
        sizeof(osc::net::Card) + sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t) + sizeof(std::shared_ptr<int>);
    constexpr std::size_t kOfFar = sizeof(osc::net::Connection) + 4 * sizeof(void*);
    return {static_cast<double>(osc::shm::Slot::bytes_for(here, job.processes)) / here,
            static_cast<double>(sizeof(osc::net::Stream) + sizeof(osc::Peer)),
            processes * kOfProcess + (processes - here) * kOfFar + job.nodes() * double{sizeof(std::uint32_t)}};
}

}  // namespace simulation
