// The protocols of libosc between nodes, as far as time and messages depend on them: the messages, and the processes
// that wait for them. Consecutive ranks share a node. docs/PERFORMANCE.md, "Large jobs", says what is modelled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine.h"
#include "net/process_table.h"

namespace simulation {

struct Job {
    std::uint32_t processes = 2;
    std::uint32_t per_node = 1;
    std::uint32_t neighbours = 1;  // targets of each process, on other nodes
    std::uint32_t repeats = 1;     // epochs, acquisitions of each process, or windows

    std::uint32_t nodes() const { return (processes + per_node - 1) / per_node; }
    std::uint32_t node_of(Process process) const { return process / per_node; }
    Process leader(std::uint32_t node) const { return node * per_node; }
    std::uint32_t local_size(std::uint32_t node) const { return std::min(per_node, processes - leader(node)); }
    /// The process as many nodes further, or before.
    Process across(Process process, std::int64_t nodes) const {
        const std::int64_t far = process + nodes * per_node;
        return static_cast<Process>((far % processes + processes) % processes);
    }
};

/// What a scenario took.
struct Outcome {
    double ns = 0;        // of one repeat
    double messages = 0;  // libosc's, of one process in one repeat
};

/// Pairs of a fence and the epoch that it ends, deferred as `auto` has them; with a put to the process on the next node
/// in each epoch, or none. sync::Dissemination, sync::FenceSummary and net::Arrivals are the library's own.
Outcome fences(const Machine& machine, const Job& job, bool put);

/// Post, start, a put to each neighbour, complete, wait.
Outcome pscw(const Machine& machine, const Job& job);

/// Lock_all, a put to each neighbour, unlock_all.
Outcome lock_all(const Machine& machine, const Job& job);

/// One exclusive lock that all processes but its owner want all the time, each for one get and, when that has come, one
/// put; each is a node. The owner is the library's own net::TargetService, which is given the bytes that an origin
/// sends.
Outcome contended_lock(const Machine& machine, const Job& job);

/// Bytes that libosc keeps for a process, by the sizes of its own structures.
struct Memory {
    double window = 0;        // for each window, when it is made
    double target = 0;        // for each target on another node that the process has used in it
    double peer = 0;          // for each process on another node that it has exchanged messages with
    double communicator = 0;  // once, with its part of what the node holds once; without what the provider keeps
};
Memory memory(const Job& job);

/// The size of a node's table of processes.
std::size_t table_bytes(const Job& job);

/// Measures what a node's entry in the table of processes takes, in ns.
double entry_ns(const Job& job);

/// MPI_Win_allocate on a communicator that has had a window before.
Outcome window(const Machine& machine, const Job& job);

/// The first MPI_Win_allocate on a communicator, whose processes know each other from others.
Outcome first_window(const Machine& machine, const Job& job);

}  // namespace simulation
