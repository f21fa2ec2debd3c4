// The layout of a process table, and look-ups in it.
#include "net/process_table.h"

#include <algorithm>
#include <numeric>

namespace osc::net {

static_assert(alignof(ProcessAddress) >= alignof(std::uint64_t) &&
              sizeof(ProcessAddress) % alignof(std::uint64_t) == 0);

std::size_t ProcessTable::bytes_for(std::uint32_t processes, std::uint32_t nodes) {
    return processes * (sizeof(ProcessAddress) + sizeof(std::uint64_t) + 3 * sizeof(std::uint32_t)) +
           nodes * sizeof(std::uint32_t);
}

ProcessTable ProcessTable::at(std::byte* memory, std::uint32_t processes, std::uint32_t nodes) {
    ProcessTable table;
    const auto take = [&memory]<class T>(std::span<T>& part, std::uint32_t count) {
        part = {reinterpret_cast<T*>(memory), count};
        memory += part.size_bytes();
    };
    take(table.addresses, processes);
    take(table.tokens, processes);
    take(table.node_of, processes);
    take(table.local_index, processes);
    take(table.by_token, processes);
    take(table.leaders, nodes);
    return table;
}

void ProcessTable::index() {
    for (std::size_t rank = 0; rank < addresses.size(); ++rank)
        tokens[rank] = addresses[rank].token;
    std::iota(by_token.begin(), by_token.end(), 0U);
    std::ranges::sort(by_token, {}, [&](std::uint32_t rank) { return tokens[rank]; });
}

const ProcessAddress* ProcessTable::find(std::uint64_t token) const {
    const auto found = std::ranges::lower_bound(by_token, token, {}, [&](std::uint32_t rank) { return tokens[rank]; });
    return found != by_token.end() && tokens[*found] == token ? &addresses[*found] : nullptr;
}

}  // namespace osc::net
