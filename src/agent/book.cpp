// The layout of a team's book, and who is who in it.
#include "agent/book.h"

#include <algorithm>
#include <numeric>

namespace osc::net {

static_assert(alignof(Card) >= alignof(std::uint64_t) && sizeof(Card) % alignof(std::uint64_t) == 0);

std::size_t Book::bytes_for(std::uint32_t processes, std::uint32_t nodes) {
    return processes * (sizeof(Card) + sizeof(std::uint64_t) + 3 * sizeof(std::uint32_t)) +
           nodes * sizeof(std::uint32_t);
}

Book Book::at(std::byte* memory, std::uint32_t processes, std::uint32_t nodes) {
    Book book;
    const auto take = [&memory]<class T>(std::span<T>& part, std::uint32_t count) {
        part = {reinterpret_cast<T*>(memory), count};
        memory += part.size_bytes();
    };
    take(book.cards, processes);
    take(book.tokens, processes);
    take(book.node_of, processes);
    take(book.place_of, processes);
    take(book.by_token, processes);
    take(book.leaders, nodes);
    return book;
}

void Book::index() {
    for (std::size_t rank = 0; rank < cards.size(); ++rank)
        tokens[rank] = cards[rank].token;
    std::iota(by_token.begin(), by_token.end(), 0U);
    std::sort(by_token.begin(), by_token.end(),
              [&](std::uint32_t one, std::uint32_t other) { return tokens[one] < tokens[other]; });
}

const Card* Book::find(std::uint64_t token) const {
    const auto found =
        std::lower_bound(by_token.begin(), by_token.end(), token,
                         [&](std::uint32_t rank, std::uint64_t wanted) { return tokens[rank] < wanted; });
    return found != by_token.end() && tokens[*found] == token ? &cards[*found] : nullptr;
}

}  // namespace osc::net
