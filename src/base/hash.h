// FNV-1a, for names and keys that all processes compute alike.
#pragma once

#include <cstdint>
#include <string_view>

namespace osc::base {

inline constexpr std::uint64_t kHashOfNothing = 0xcbf29ce484222325ull;

/// The hash of what `hash` is of, and then `value`: a byte, or a whole word.
constexpr std::uint64_t hash_with(std::uint64_t hash, std::uint64_t value) {
    return (hash ^ value) * 0x100000001b3ull;
}

/// The hash of what `hash` is of, and then the bytes of `text`.
constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t hash = kHashOfNothing) {
    for (const char byte : text)
        hash = hash_with(hash, static_cast<unsigned char>(byte));
    return hash;
}

}  // namespace osc::base
