// The processes of a team that spans nodes, and how each is reached. A node keeps one table, in memory that its
// processes share (invariant I6). The node's first process writes it before the others see it. Nodes send each other,
// and the table keeps, only the bytes in which the addresses of a team differ: for each node those of its first
// process. The other processes' stay at their node. A process of this node looks them up when it first uses one
// (directory.h), and enters them into room that takes no memory before.
#pragma once

#include <array>
#include <atomic>
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

    // A *part* is what the first process of a node sends to those of the others: the ranks of its node's processes,
    // ascending, and of its own address the bytes that differ. *Others* are the bytes of the addresses of the node's
    // other processes. In these addresses a token is without the rank, by exclusive or: then the tokens of a network
    // that was opened for the same team are equal (Team::name_).
    /// Their sizes, in bytes.
    std::size_t part_bytes(std::span<const std::uint32_t> ranks) const;
    std::size_t others_bytes(std::size_t processes) const;
    void write_part(std::span<const std::uint32_t> ranks, std::span<const ProcessAddress> addresses, bool with_others,
                    std::byte* part) const;
    void write_others(std::span<const ProcessAddress> addresses, std::byte* others) const;
    /// Whether parts have the others behind them: the tokens without the ranks differ, since processes have opened
    /// their networks for other teams; or others of this size, the team's largest, fit no message.
    bool sends_others(std::size_t largest) const;

  private:
    friend struct ProcessTable;
    // `first`: the bytes of a part's first address; `own`: the first of them, of another one.
    ProcessAddress unpack(const std::byte* first, const std::byte* own) const;
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
        std::size_t others_bytes = 0;  // room for those of a part; 0: parts have them behind them
    };
    /// Where a process's address is: in a part, the first one's or that of one of the others.
    struct Place {
        std::uint32_t part;
        std::uint32_t index;
    };

    AddressForm form;
    Size size;
    std::byte* memory = nullptr;
    Tokens tokens;
    std::span<std::uint32_t> firsts;   // by part, ascending: its first process
    std::span<std::uint32_t> leaders;  // by node, in the same order everywhere: its first process
    std::span<std::uint32_t> nodes_of_parts;
    std::span<std::byte> parts;
    std::span<std::uint32_t> look_ups;  // by part: kUnasked, kKnown, or the process that asks, plus one
    std::span<std::byte> others;        // by part

    static constexpr std::uint32_t kUnasked = 0;
    static constexpr std::uint32_t kKnown = ~std::uint32_t{0};

    static std::size_t bytes(const Size& size, const AddressForm& form);
    /// The table that is, or is to be, at `memory`: aligned like std::uint64_t.
    static ProcessTable at(std::byte* memory, const Size& size, const AddressForm& form);
    /// Enters the processes of a part, whose first one is `first`.
    void enter(std::uint32_t part, std::uint32_t first, std::uint32_t node);

    Place place_of(std::uint32_t rank) const;
    std::uint32_t node_of(std::uint32_t rank) const { return nodes_of_parts[place_of(rank).part]; }
    /// Another process of the part of `rank`; `rank` if there is none.
    std::uint32_t neighbour_of(std::uint32_t rank) const;
    /// The address of the first process of a part.
    ProcessAddress first_address(std::uint32_t part) const { return address(firsts[part], {part, 0}); }
    /// Whether all nodes have the address from the start.
    bool is_public(const Place& place) const { return place.index == 0 || size.others_bytes == 0; }
    /// Whether this node has it; then address() gives it.
    bool knows(const Place& place) const { return is_public(place) || look_up(place.part).load() == kKnown; }
    ProcessAddress address(std::uint32_t rank, const Place& place) const;

    /// The state of a part's look-up. A process that has changed it from kUnasked, or from a dead process's, to its own
    /// may enter the others, which makes them known, or store kUnasked.
    std::atomic_ref<std::uint32_t> look_up(std::uint32_t part) const { return std::atomic_ref(look_ups[part]); }
    void enter_others(std::uint32_t part, std::span<const std::byte> its) const;
    /// The others of a part, which are known or being entered.
    std::span<std::byte> others_of(std::uint32_t part) const;
    /// The rank of the process with this token, or kUnknown.
    std::uint32_t find(std::uint64_t token) const;

  private:
    struct Part;
    Part part_at(std::uint32_t part) const;
};

}  // namespace osc::net
