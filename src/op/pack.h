// Copies data described by layouts: between two layouts, and between a layout and a packed message, whole or in
// windows. Owns nothing. Safe from any thread as long as the memory is not in use elsewhere.
#pragma once

#include <cstddef>

#include "op/cursor.h"

namespace osc::op {

/// Copies `n` pieces of `bytes` bytes from `src` to `dst`, each side advancing by its own stride in bytes. Pieces of 1,
/// 2, 4 and 8 bytes are single loads and stores, so that an aligned one is never seen half written. The sides must not
/// overlap.
void copy_strided(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                  std::size_t bytes, std::size_t n) noexcept;

/// Copies `src_count` elements to `dst_count` elements of as many bytes, as put and get do (MPI 4.1 section 12.3).
void copy(const Layout& dst_layout, std::size_t dst_count, void* dst, const Layout& src_layout, std::size_t src_count,
          const void* src) noexcept;

/// Packs up to `capacity` bytes from the cursor's position into `out` and moves the cursor; returns the bytes packed.
std::size_t pack(Cursor& from, const void* base, void* out, std::size_t capacity) noexcept;
/// The reverse of pack: spreads up to `length` bytes of `in` from the cursor's position on.
std::size_t unpack(Cursor& to, void* base, const void* in, std::size_t length) noexcept;

/// Packs bytes [offset, offset + capacity) of the packed form of `count` elements, or what there is of them.
std::size_t pack(const Shape& shape, std::size_t count, const void* base, std::size_t offset, void* out,
                 std::size_t capacity) noexcept;
/// The reverse: `in` holds bytes [offset, offset + length) of the packed form.
std::size_t unpack(const Shape& shape, std::size_t count, void* base, std::size_t offset, const void* in,
                   std::size_t length) noexcept;

}  // namespace osc::op
