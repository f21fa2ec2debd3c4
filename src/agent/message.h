// The messages that ask a target's agent to work on its own memory: one request and its answer in one buffer. Nothing
// here knows how the buffer travels, so that a shared-memory queue and a network carry the same bytes.
//
// A message has a header and a payload. The payload holds, from its front, the data of all parts one behind the other,
// and from its end downwards the places of all parts but the first, whose place is in the header. What the answer
// returns lies behind the data, so that a request and its answer never overlap. Integers are in the byte order of the
// node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "agent/work.h"
#include "op/kernels.h"

namespace osc::agent {

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::uint32_t kMostParts = 512;

/// Where one run of bytes lies in the target's memory.
struct Part {
    std::int64_t disp;    // bytes from displacement 0; the address in a dynamic window
    std::uint64_t bytes;  // never 0
};

struct Header {
    std::uint16_t version = kVersion;
    Kind kind = Kind::Put;
    Basic basic = Basic::None;  // updates and compare-and-swap
    Op op = Op::None;           // updates
    std::uint8_t zero[3] = {};
    std::uint32_t parts = 0;
    std::uint32_t bytes = 0;   // of all parts together
    std::uint64_t window = 0;  // the target's number for it
    Part first{};
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) == 40);

/// How the payload is divided, in bytes from its front.
struct Extents {
    std::size_t in;      // data sent
    std::size_t out_at;  // where the answer begins
    std::size_t out;     // data returned
    std::size_t needed;  // capacity that the message needs, the places of the parts included
};

/// The division for `bytes` bytes in `parts` parts. Both must be below 2^32, so that nothing overflows.
constexpr Extents extents(Kind kind, Op op, std::uint64_t bytes, std::uint64_t parts) {
    Extents e{};
    const bool update = kind == Kind::Update || kind == Kind::UpdateReturn;
    if (kind == Kind::CompareAndSwap) {
        e.in = 2 * bytes;
    } else if (kind == Kind::Put || (update && op != Op::NoOp)) {
        e.in = bytes;
    }
    e.out_at = (e.in + 15) / 16 * 16;
    e.out = kind == Kind::Put || kind == Kind::Update ? 0 : bytes;
    e.needed = e.out_at + e.out + 15 + (parts > 0 ? parts - 1 : 0) * sizeof(Part);
    return e;
}

/// Where part `i` >= 1 is kept in a payload of `capacity` bytes (a multiple of 16, as is the payload's address).
inline std::size_t part_at(std::size_t capacity, std::uint32_t i) {
    return capacity - i * sizeof(Part);
}

}  // namespace osc::agent
