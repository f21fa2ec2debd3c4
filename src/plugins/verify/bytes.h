// The bytes that an operand covers, and the alignment of its elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "op/layout.h"

namespace osc::check {

/// The bytes [lo, hi).
struct Bytes {
    std::int64_t lo = 0;
    std::int64_t hi = 0;
    friend bool operator==(Bytes, Bytes) = default;
};

/// Appends the bytes of `count` elements of a layout whose first element is at `start`: ascending and disjoint. False:
/// there are more than 4,096 blocks, and one range covers them all. Appends nothing if they do not fit 64 bits.
bool find_bytes(const op::Layout& layout, std::size_t count, std::int64_t start, std::vector<Bytes>& bytes);

/// The text "[8, 16)", or "[8, 16) and 3 more ranges".
std::string text_of(const std::vector<Bytes>& bytes);

/// The alignment in bytes of a variable of the type on x86-64 and AArch64; 1 for Basic::None.
std::int64_t alignment_of(Basic basic);

}  // namespace osc::check
