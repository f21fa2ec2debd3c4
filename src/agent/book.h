// The processes of a team that spans nodes, and how each is reached: held once per node, in memory that its processes
// share (invariant I6). Written by the first of them, before the others see it; read by all, and changed no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "agent/network.h"

namespace osc::net {

struct Book {
    std::span<Card> cards;              // by rank
    std::span<std::uint64_t> tokens;    // the same, as Serving wants them
    std::span<std::uint32_t> node_of;   // by rank
    std::span<std::uint32_t> place_of;  // by rank: its number on this node, or shm::Places::kElsewhere
    std::span<std::uint32_t> by_token;  // ranks, in the order of their tokens
    std::span<std::uint32_t> leaders;   // by node, in the same order everywhere: its first process

    /// What it takes, in bytes.
    static std::size_t bytes_for(std::uint32_t processes, std::uint32_t nodes);
    /// The book that is, or is to be, at `memory`: aligned like Card.
    static Book at(std::byte* memory, std::uint32_t processes, std::uint32_t nodes);

    /// Fills tokens and by_token, by the cards.
    void index();
    /// The card of the process with this token; null if it is none of these.
    const Card* find(std::uint64_t token) const;
};

}  // namespace osc::net
