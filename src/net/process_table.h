// The processes of a team that spans nodes, and how each is reached. A node keeps one table, in memory that its
// processes share (invariant I6). The node's first process writes it before the others see it; no process changes it
// later. Nodes send each other, and the table keeps, only the bytes in which the addresses of a team differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/endpoint.h"
#include "progress/lifeline.h"

namespace osc::net {

/// What a process calls itself, and what messages to it must carry.
struct ProcessName {
    std::uint64_t token = 0;   // unique in the job
    std::uint64_t secret = 0;  // equal in the processes that have opened their networks for the same team
};

/// How a process is reached; exchanged through the host MPI. It has no padding, because its bytes are compared.
struct ProcessAddress : ProcessName {
    fabric::Address address;
    progress::SocketAddress lifeline;  // none: its host has no IPv4 address that others know
};
static_assert(sizeof(ProcessAddress) ==
              sizeof(ProcessName) + sizeof(fabric::Address) + sizeof(progress::SocketAddress));

/// The bytes in which the addresses of a team differ: from rank 0's, and from that of the first process of the same
/// node. The team's is the union (bitwise or) of its processes'.
struct AddressDifferences {
    using Bytes = std::array<std::uint8_t, sizeof(ProcessAddress)>;
    AddressDifferences() = default;
    AddressDifferences(const ProcessAddress& own, const ProcessAddress& of_rank_0, const ProcessAddress& of_first);
    Bytes in_team{};
    Bytes in_node{};
};

/// How addresses become the bytes that differ, and back; equal on all processes of a team.
class AddressForm {
  public:
    AddressForm() = default;
    AddressForm(const ProcessAddress& of_rank_0, const AddressDifferences& of_team);

    // A *part* is what the first process of a node sends to those of the others for all processes of its node: their
    // ranks, ascending, and of each address the bytes that differ. In these addresses a token is without the rank, by
    // exclusive or: then the tokens of a network that was opened for the same team are equal (Team::name_).
    /// A part's size, in bytes.
    std::size_t part_bytes(std::span<const std::uint32_t> ranks) const;
    void write_part(std::span<const std::uint32_t> ranks, std::span<const ProcessAddress> addresses,
                    std::byte* part) const;

  private:
    friend struct ProcessTable;
    // `first`: the bytes of a part's first address; `own`: the first of them, of another one.
    ProcessAddress unpack(const std::byte* first, const std::byte* own) const;
    // Whether the tokens without the ranks differ: processes have opened their networks for other teams.
    bool tokens_differ() const;

    ProcessAddress base_;                              // rank 0's
    std::array<std::uint8_t, sizeof base_> places_{};  // of the bytes that differ, those that differ in nodes first
    std::uint8_t width_ = 0;                           // how many differ
    std::uint8_t width_in_node_ = 0;
};

/// The tokens of a team's processes, by rank.
struct Tokens {
    std::uint64_t common = 0;        // without the rank, by exclusive or
    std::span<std::uint64_t> own{};  // where that differs
    std::uint64_t operator[](std::uint32_t rank) const { return own.empty() ? common ^ rank : own[rank]; }
};

struct ProcessTable {
    static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
    /// How many there are of each. Parts may be of nodes that have become one.
    struct Size {
        std::uint32_t processes = 0;
        std::uint32_t nodes = 0;
        std::uint32_t parts = 0;
        std::size_t part_bytes = 0;
    };

    AddressForm form;
    Size size;
    std::byte* memory = nullptr;
    Tokens tokens;
    std::span<std::uint32_t> places;   // by rank: where its address is in `parts`
    std::span<std::uint32_t> leaders;  // by node, in the same order everywhere: its first process
    std::span<std::uint32_t> nodes_of_parts;
    std::span<std::byte> parts;

    static std::size_t bytes(const Size& size, const AddressForm& form);
    /// The table that is, or is to be, at `memory`: aligned like std::uint64_t.
    static ProcessTable at(std::byte* memory, const Size& size, const AddressForm& form);
    /// Enters the processes of a part, whose first one is `first`.
    void enter(std::uint32_t part, std::uint32_t first, std::uint32_t node);

    ProcessAddress address(std::uint32_t rank) const;
    std::uint32_t node_of(std::uint32_t rank) const { return nodes_of_parts[part_of(rank)]; }
    /// The rank of the process with this token, or kUnknown.
    std::uint32_t find(std::uint64_t token) const;

  private:
    std::uint32_t part_of(std::uint32_t rank) const {
        return places[rank] / static_cast<std::uint32_t>(size.part_bytes);
    }
};

}  // namespace osc::net
