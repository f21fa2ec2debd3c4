// The processes of a team that spans nodes, and how each is reached. A node keeps one table, in memory that its
// processes share (invariant I6). The node's first process writes it before the others see it; no process changes it
// later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/endpoint.h"
#include "progress/lifeline.h"

namespace osc::net {

/// How a process is reached; exchanged through the host MPI.
struct ProcessAddress {
    std::uint64_t token = 0;   // the process's name; random
    std::uint64_t secret = 0;  // that messages to it must carry
    fabric::Address address;
    progress::SocketAddress lifeline;  // none: its host has no IPv4 address that others know
};

struct ProcessTable {
    std::span<ProcessAddress> addresses;   // by rank
    std::span<std::uint64_t> tokens;       // the same, as ExposedWindow wants them
    std::span<std::uint32_t> node_of;      // by rank
    std::span<std::uint32_t> local_index;  // by rank: its number on this node, or shm::LocalRanks::kRemote
    std::span<std::uint32_t> by_token;     // ranks, in the order of their tokens
    std::span<std::uint32_t> leaders;      // by node, in the same order everywhere: its first process

    /// The size of a table, in bytes.
    static std::size_t bytes_for(std::uint32_t processes, std::uint32_t nodes);
    /// The table that is, or is to be, at `memory`: aligned like ProcessAddress.
    static ProcessTable at(std::byte* memory, std::uint32_t processes, std::uint32_t nodes);

    /// Fills tokens and by_token from `addresses`.
    void index();
    /// The address of the process with this token; null if it is none of these.
    const ProcessAddress* find(std::uint64_t token) const;
};

}  // namespace osc::net
