// Copies bytes. Owns nothing. Safe from any thread as long as the memory is not in use elsewhere.
#pragma once

#include <cstddef>
#include <cstring>

namespace osc::base {

inline constexpr std::size_t kLongCopy = 2048;

/// copy_bytes() of kLongCopy bytes and more.
void copy_long(void* to, const void* from, std::size_t bytes) noexcept;

/// Copies `bytes` bytes. The places may overlap; without bytes they may be null.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
    if (bytes >= kLongCopy)
        copy_long(to, from, bytes);
    else if (bytes != 0)
        std::memmove(to, from, bytes);
}

/// Copies many bytes to a place that a thread on another core reads next, as soon as it has seen what this one stores
/// afterwards, and that this one does not read. The places do not overlap.
void copy_to_reader(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace osc::base
