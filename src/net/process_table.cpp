// The layout of a process table, look-ups in it, and the form of its addresses. A table of a million processes is
// written while the first window of all of them waits.
// Build: -O2
#include "net/process_table.h"

#include <algorithm>
#include <cstring>

namespace osc::net {
namespace {

// Ranks of a part: first, first + stride, ... Processes placed by blocks or round the nodes make one run for each node.
struct Run {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t stride = 0;
};

// Calls each(run) for the runs that the ranks are cut into; returns their number. One rank alone makes none: it is the
// node's first process, which all know.
template <class Each>
std::uint32_t cut(std::span<const std::uint32_t> ranks, Each&& each) {
    std::uint32_t runs = 0;
    for (std::size_t at = 0; ranks.size() > 1 && at < ranks.size(); ++runs) {
        Run run{ranks[at], 1, 1};
        if (at + 1 < ranks.size()) run.stride = ranks[at + 1] - ranks[at];
        while (at + run.count < ranks.size() && ranks[at + run.count] == run.first + run.count * run.stride)
            ++run.count;
        each(run);
        at += run.count;
    }
    return runs;
}

AddressDifferences::Bytes bytes_of(const ProcessAddress& address) {
    AddressDifferences::Bytes bytes;
    std::memcpy(bytes.data(), &address, bytes.size());
    return bytes;
}

}  // namespace

AddressDifferences::AddressDifferences(const ProcessAddress& own, const ProcessAddress& of_rank_0,
                                       const ProcessAddress& of_first) {
    const Bytes mine = bytes_of(own);
    const Bytes zero = bytes_of(of_rank_0);
    const Bytes first = bytes_of(of_first);
    for (std::size_t at = 0; at < mine.size(); ++at) {
        in_team[at] = mine[at] ^ zero[at];
        in_node[at] = mine[at] ^ first[at];
    }
}

// A byte that differs in a node differs from rank 0's in one of its processes.
AddressForm::AddressForm(const ProcessAddress& of_rank_0, const AddressDifferences& of_team) : base_(of_rank_0) {
    const auto take = [&](bool in_node) {
        for (std::size_t at = 0; at < places_.size(); ++at)
            if (of_team.in_team[at] != 0 && (of_team.in_node[at] != 0) == in_node)
                places_[width_++] = static_cast<std::uint8_t>(at);
    };
    take(true);
    width_in_node_ = width_;
    take(false);
}

ProcessAddress AddressForm::unpack(const std::byte* first, const std::byte* own) const {
    ProcessAddress address = base_;
    auto* const bytes = reinterpret_cast<std::byte*>(&address);
    for (std::size_t i = 0; i < width_; ++i)
        bytes[places_[i]] = i < width_in_node_ ? own[i] : first[i];
    return address;
}

// A token's bytes are the first ones of an address.
bool AddressForm::tokens_differ() const {
    return std::any_of(places_.begin(), places_.begin() + width_,
                       [](std::uint8_t place) { return place < sizeof(ProcessAddress::token); });
}

std::size_t AddressForm::part_bytes(std::span<const std::uint32_t> ranks) const {
    const std::size_t runs = cut(ranks, [](const Run&) {});
    const std::size_t bytes = sizeof(std::uint32_t) + runs * sizeof(Run) + width_ + (ranks.size() - 1) * width_in_node_;
    return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t) * sizeof(std::uint64_t);
}

void AddressForm::write_part(std::span<const std::uint32_t> ranks, std::span<const ProcessAddress> addresses,
                             std::byte* part) const {
    std::byte* at = part + sizeof(std::uint32_t);
    const std::uint32_t runs = cut(ranks, [&](const Run& run) {
        std::memcpy(at, &run, sizeof run);
        at += sizeof run;
    });
    std::memcpy(part, &runs, sizeof runs);
    for (std::size_t process = 0; process < ranks.size(); ++process) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(&addresses[process]);
        for (std::size_t i = 0; i < (process == 0 ? width_ : width_in_node_); ++i)
            *at++ = bytes[places_[i]];
    }
}

std::size_t ProcessTable::bytes(const Size& size, const AddressForm& form) {
    const std::size_t tokens = form.tokens_differ() ? size.processes * sizeof(std::uint64_t) : 0;
    return tokens + (std::size_t{size.processes} + size.nodes + size.parts) * sizeof(std::uint32_t) +
           size.parts * size.part_bytes;
}

ProcessTable ProcessTable::at(std::byte* memory, const Size& size, const AddressForm& form) {
    ProcessTable table;
    table.form = form;
    table.size = size;
    table.memory = memory;
    table.tokens.common = form.base_.token;
    const auto take = [&memory]<class T>(std::span<T>& part, std::size_t count) {
        part = {reinterpret_cast<T*>(memory), count};
        memory += part.size_bytes();
    };
    take(table.tokens.own, form.tokens_differ() ? size.processes : 0);
    take(table.places, size.processes);
    take(table.leaders, size.nodes);
    take(table.nodes_of_parts, size.parts);
    take(table.parts, size.parts * size.part_bytes);
    return table;
}

void ProcessTable::enter(std::uint32_t part, std::uint32_t first, std::uint32_t node) {
    const std::byte* const begin = parts.data() + part * size.part_bytes;
    std::uint32_t runs = 0;
    std::memcpy(&runs, begin, sizeof runs);
    const std::byte* const of_first = begin + sizeof runs + runs * sizeof(Run);
    nodes_of_parts[part] = node;
    const auto enter_one = [&](std::uint32_t rank, const std::byte* own) {
        places[rank] = static_cast<std::uint32_t>(own - parts.data());
        if (!tokens.own.empty()) tokens.own[rank] = form.unpack(of_first, own).token ^ rank;
    };
    enter_one(first, of_first);
    const std::byte* own = of_first + form.width_ - form.width_in_node_;
    for (std::uint32_t number = 0; number < runs; ++number) {
        Run run;
        std::memcpy(&run, begin + sizeof runs + number * sizeof run, sizeof run);
        for (std::uint32_t i = 0; i < run.count; ++i, own += form.width_in_node_)
            if (number > 0 || i > 0) enter_one(run.first + i * run.stride, own);
    }
}

ProcessAddress ProcessTable::address(std::uint32_t rank) const {
    const std::byte* const part = parts.data() + part_of(rank) * size.part_bytes;
    std::uint32_t runs = 0;
    std::memcpy(&runs, part, sizeof runs);
    ProcessAddress found = form.unpack(part + sizeof runs + runs * sizeof(Run), parts.data() + places[rank]);
    found.token ^= rank;
    return found;
}

// The network of a process is mostly opened for the team of all: its token tells its rank there (Team::name_).
std::uint32_t ProcessTable::find(std::uint64_t token) const {
    const std::uint64_t likely = token ^ tokens[0];
    if (likely < size.processes && tokens[static_cast<std::uint32_t>(likely)] == token)
        return static_cast<std::uint32_t>(likely);
    const auto found = std::ranges::find(tokens.own, token);
    return found != tokens.own.end() ? static_cast<std::uint32_t>(found - tokens.own.begin()) : kUnknown;
}

}  // namespace osc::net
