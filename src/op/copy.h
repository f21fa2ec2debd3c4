// Copies data between layouts, and between a layout and an array. Owns nothing. Safe from any thread as long as the
// memory is not in use elsewhere. Pieces of 1, 2, 4 and 8 bytes are single loads and stores, so that an aligned one is
// never seen half written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "op/cursor.h"

namespace osc::op {

/// The byte at `offset` from `base`. Computed as a number: the base may be MPI_BOTTOM, which is null, with offsets that
/// are addresses.
inline std::byte* at(const void* base, std::ptrdiff_t offset) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(offset));
}

/// Copies `src_count` elements to `dst_count` elements of as many bytes, as put and get do (MPI 4.1 section 12.3).
/// Stops with the shorter side.
void copy(const Layout& dst_layout, std::size_t dst_count, void* dst, const Layout& src_layout, std::size_t src_count,
          const void* src) noexcept;

/// Copies the next data of `from`, displacements counting from `base`, to an array, and advances the cursor; at most
/// `bytes` bytes. A piece of which only a part fits stays for the next call, unless it is the first. Returns the bytes.
std::size_t pack(Cursor& from, const void* base, void* array, std::size_t bytes) noexcept;
/// The other way round.
std::size_t unpack(Cursor& to, void* base, const void* array, std::size_t bytes) noexcept;

}  // namespace osc::op
