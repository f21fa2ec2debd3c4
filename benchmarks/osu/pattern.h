// Reproducible data: every seed gives other bytes at every offset, so that data of another iteration, size, rank or
// offset is recognised as wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

namespace osu {

enum class Purpose { operand, memory, result };

// `round` is never used twice in a run.
inline std::uint64_t seed_of(std::uint64_t round, int rank, Purpose purpose) {
    constexpr int kRankBits = 22;
    constexpr int kPurposeBits = 2;
    return ((round << kRankBits | static_cast<std::uint64_t>(rank)) << kPurposeBits) |
           static_cast<std::uint64_t>(purpose);
}

inline void fill(std::byte* at, std::size_t bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
        const std::uint64_t word = random();
        const std::size_t left = bytes - i;
        std::memcpy(at + i, &word, left < sizeof word ? left : sizeof word);
    }
}

}  // namespace osu
