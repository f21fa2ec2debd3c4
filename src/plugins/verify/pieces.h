// The bytes that accesses touch, as rows of equal blocks: derived datatypes and loops make them, and two long rows
// compare in a few steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/verify/events.h"

namespace osc::check {

/// `count` blocks of `bytes` bytes; block i begins at lo + i * stride. stride > bytes if count > 1, else 0.
struct Piece {
    std::int64_t lo = 0;
    std::int64_t bytes = 0;
    std::int64_t stride = 0;
    std::int64_t count = 1;

    std::int64_t hi() const { return lo + (count - 1) * stride + bytes; }
    friend bool operator==(const Piece&, const Piece&) = default;
};

/// Appends `next` to `row` if the result is one piece. Blocks of a row lie multiples of `unit` bytes apart.
bool extend(Piece& row, const Piece& next, std::int64_t unit);

/// Ascending, disjoint ranges as few pieces.
std::vector<Piece> pieces_of(std::span<const Bytes> ranges, std::int64_t unit);

/// Whether two pieces share a byte. `where`: the bytes that one block of each shares.
bool overlap(const Piece& a, const Piece& b, Bytes& where);

/// Whether an element of one piece lies across elements of the other: they share bytes, but do not coincide. Elements
/// of `size` bytes begin at the begin of a block.
bool crosses(const Piece& a, const Piece& b, std::int64_t size, Bytes& where);

/// True only if every byte of `inner` is one of `outer`; may be false although it is.
bool contains(const Piece& outer, const Piece& inner);

}  // namespace osc::check
