// What libosc keeps for a window and for its communicator.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <vector>

#include "core/core.h"
#include "net/network_stack.h"
#include "net/origin/remote_window.h"
#include "net/origin/stream.h"
#include "net/process_table.h"
#include "protocols.h"
#include "shm/control.h"

namespace simulation {
namespace {

// The memory that a node's control table takes when it is made: of its pages, those that are touched.
std::size_t control_table_bytes(std::uint32_t here, std::uint32_t processes) {
    const std::size_t bytes = osc::shm::ControlTable::bytes_for(here, processes);
    void* const room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) throw std::bad_alloc();
    osc::shm::LocalRanks local_ranks{std::vector<std::uint32_t>(here)};
    std::iota(local_ranks.rank_at.begin(), local_ranks.rank_at.end(), 0);
    const auto* const local = here < processes ? &local_ranks : nullptr;
    osc::shm::construct({static_cast<std::byte*>(room), osc::shm::ControlTable::stride_for(processes), local},
                        processes);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> resident((bytes + page - 1) / page);
    if (::mincore(room, bytes, resident.data()) != 0) throw std::bad_alloc();
    ::munmap(room, bytes);
    const auto pages = std::ranges::count_if(resident, [](unsigned char one) { return (one & 1) != 0; });
    return std::min(bytes, static_cast<std::size_t>(pages) * page);
}

}  // namespace

Memory memory(const Job& job) {
    const std::uint32_t here = std::min(job.per_node, job.processes);
    // Team: its part of the node's process table, and an entry for each process of the node.
    const auto table = static_cast<double>(table_bytes(job));
    constexpr std::size_t kOfMate = sizeof(std::shared_ptr<int>) + sizeof(std::uint32_t);
    // Network: the connection, and its place in a hash table.
    constexpr std::size_t kOfPeer = sizeof(osc::net::Connection) + 4 * sizeof(void*);
    return {static_cast<double>(control_table_bytes(here, job.processes)) / here,
            static_cast<double>(sizeof(osc::net::Stream) + sizeof(osc::Target)), static_cast<double>(kOfPeer),
            table / here + static_cast<double>(here * kOfMate)};
}

}  // namespace simulation
