// The layout of a process table, look-ups in it, and the form of its addresses. A table of a million processes is
// written while the first window of all of them waits.
// Build: -O2
#include "net/process_table.h"

#include <algorithm>
#include <cstring>

#include "net/wire.h"

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

bool AddressForm::sends_others(std::size_t largest) const {
    return tokens_differ() || sizeof(Frame) + sizeof(ReplyHead) + largest > fabric::kSmallestBuffer;
}

std::size_t AddressForm::part_bytes(std::span<const std::uint32_t> ranks) const {
    const std::size_t runs = cut(ranks, [](const Run&) {});
    return padded(sizeof(std::uint32_t) + runs * sizeof(Run) + width_);
}

std::size_t AddressForm::others_bytes(std::size_t processes) const {
    return padded((processes - 1) * width_in_node_);
}

void AddressForm::write_part(std::span<const std::uint32_t> ranks, std::span<const ProcessAddress> addresses,
                             bool with_others, std::byte* part) const {
    std::byte* at = part + sizeof(std::uint32_t);
    const std::uint32_t runs = cut(ranks, [&](const Run& run) {
        std::memcpy(at, &run, sizeof run);
        at += sizeof run;
    });
    std::memcpy(part, &runs, sizeof runs);
    const auto* const bytes = reinterpret_cast<const std::byte*>(&addresses[0]);
    for (std::size_t i = 0; i < width_; ++i)
        *at++ = bytes[places_[i]];
    if (with_others) write_others(addresses, at);
}

void AddressForm::write_others(std::span<const ProcessAddress> addresses, std::byte* others) const {
    for (const ProcessAddress& address : addresses.subspan(1)) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(&address);
        for (std::size_t i = 0; i < width_in_node_; ++i)
            *others++ = bytes[places_[i]];
    }
}

/// A part as it lies in the table. The others, if it has them, follow the bytes of the first.
struct ProcessTable::Part {
    std::uint32_t runs = 0;
    const std::byte* first_run = nullptr;
    const std::byte* of_first = nullptr;

    Run run(std::uint32_t number) const {
        Run run;
        std::memcpy(&run, first_run + number * sizeof run, sizeof run);
        return run;
    }
    std::uint32_t processes() const {
        std::uint32_t all = runs == 0 ? 1 : 0;
        for (std::uint32_t number = 0; number < runs; ++number)
            all += run(number).count;
        return all;
    }
    // The place of a rank among the part's, or kUnknown.
    std::uint32_t index_of(std::uint32_t rank) const {
        std::uint32_t before = 0;
        for (std::uint32_t number = 0; number < runs; ++number) {
            const Run one = run(number);
            const std::uint32_t steps = one.stride > 0 ? (rank - one.first) / one.stride : 0;
            if (rank >= one.first && steps < one.count && one.first + steps * one.stride == rank) return before + steps;
            before += one.count;
        }
        return kUnknown;
    }
};

ProcessTable::Part ProcessTable::part_at(std::uint32_t part) const {
    Part found;
    const std::byte* const begin = parts.data() + part * size.part_bytes;
    std::memcpy(&found.runs, begin, sizeof found.runs);
    found.first_run = begin + sizeof found.runs;
    found.of_first = found.first_run + found.runs * sizeof(Run);
    return found;
}

std::size_t ProcessTable::bytes(const Size& size, const AddressForm& form) {
    const std::size_t tokens = form.tokens_differ() ? size.processes * sizeof(std::uint64_t) : 0;
    const std::size_t words = std::size_t{2} * size.parts + size.nodes + (size.others_bytes > 0 ? size.parts : 0);
    return tokens + words * sizeof(std::uint32_t) + size.parts * (size.part_bytes + size.others_bytes);
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
    take(table.firsts, size.parts);
    take(table.leaders, size.nodes);
    take(table.nodes_of_parts, size.parts);
    take(table.look_ups, size.others_bytes > 0 ? size.parts : 0);
    take(table.parts, size.parts * size.part_bytes);
    take(table.others, size.parts * size.others_bytes);
    return table;
}

void ProcessTable::enter(std::uint32_t part, std::uint32_t first, std::uint32_t node) {
    firsts[part] = first;
    nodes_of_parts[part] = node;
    if (tokens.own.empty()) return;
    const auto enter_token = [&](std::uint32_t rank, std::uint32_t index) {
        tokens.own[rank] = address(rank, {part, index}).token;
    };
    enter_token(first, 0);
    const Part its = part_at(part);
    std::uint32_t index = 0;
    for (std::uint32_t number = 0; number < its.runs; ++number) {
        const Run run = its.run(number);
        for (std::uint32_t i = 0; i < run.count; ++i)
            enter_token(run.first + i * run.stride, index++);
    }
}

// Processes are mostly placed by blocks, or round the nodes.
ProcessTable::Place ProcessTable::place_of(std::uint32_t rank) const {
    const auto block = std::ranges::upper_bound(firsts, rank) - firsts.begin() - 1;
    const auto in = [&](std::size_t part, std::uint32_t& index) {
        index = rank == firsts[part] ? 0 : part_at(static_cast<std::uint32_t>(part)).index_of(rank);
        return index != kUnknown;
    };
    Place place{static_cast<std::uint32_t>(block), 0};
    if (in(place.part, place.index)) return place;
    place.part = rank % size.parts;
    if (in(place.part, place.index)) return place;
    for (place.part = 0; place.part + 1 < size.parts && !in(place.part, place.index);)
        ++place.part;
    return place;
}

std::uint32_t ProcessTable::neighbour_of(std::uint32_t rank) const {
    const Place place = place_of(rank);
    if (place.index > 0) return firsts[place.part];
    const Part its = part_at(place.part);
    if (its.runs == 0) return rank;
    const Run run = its.run(0);
    return run.count > 1 ? run.first + run.stride : its.run(1).first;
}

ProcessAddress ProcessTable::address(std::uint32_t rank, const Place& place) const {
    const Part its = part_at(place.part);
    const std::byte* const own =
        place.index == 0 ? its.of_first
                         : (size.others_bytes > 0 ? others_of(place.part).data() : its.of_first + form.width_) +
                               (place.index - 1) * form.width_in_node_;
    ProcessAddress found = form.unpack(its.of_first, own);
    found.token ^= rank;
    return found;
}

void ProcessTable::enter_others(std::uint32_t part, std::span<const std::byte> its) const {
    std::ranges::copy(its, others_of(part).begin());
    look_up(part).store(kKnown);
}

std::span<std::byte> ProcessTable::others_of(std::uint32_t part) const {
    return others.subspan(part * size.others_bytes, form.others_bytes(part_at(part).processes()));
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
