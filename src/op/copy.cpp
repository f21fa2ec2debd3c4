// The copies behind copy.h.
// Build: -O3
#include "op/copy.h"

#include <cstring>
#include <utility>

namespace osc::op {

namespace {

// A size known at compile time makes the copy of one piece a few moves instead of a call.
template <std::size_t Bytes>
void copy_pieces(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                 std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, dst += dst_stride, src += src_stride)
        std::memcpy(dst, src, Bytes);
}

// Copies `n` pieces of `bytes` bytes, each side advancing by its own stride in bytes. Pieces of 1, 2, 4 and 8 bytes are
// single loads and stores, so that an aligned one is never seen half written. The sides must not overlap.
void copy_strided(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                  std::size_t bytes, std::size_t n) noexcept {
    const auto copied = [&]<std::size_t... Known>(std::index_sequence<Known...>) {
        return ((bytes == Known && (copy_pieces<Known>(dst, dst_stride, src, src_stride, n), true)) || ...);
    };
    if (copied(std::index_sequence<1, 2, 4, 8, 12, 16, 24, 32, 64>())) return;
    for (std::size_t i = 0; i < n; ++i, dst += dst_stride, src += src_stride)
        std::memcpy(dst, src, bytes);
}

}  // namespace

void copy(const Layout& dst_layout, std::size_t dst_count, void* dst, const Layout& src_layout, std::size_t src_count,
          const void* src) noexcept {
    for_each_batch(dst_layout, dst_count, src_layout, src_count,
                   [dst = static_cast<std::byte*>(dst), src = static_cast<const std::byte*>(src)](
                       std::ptrdiff_t to_off, std::ptrdiff_t to_stride, std::ptrdiff_t from_off,
                       std::ptrdiff_t from_stride, std::size_t bytes, std::size_t n) {
                       copy_strided(dst + to_off, to_stride, src + from_off, from_stride, bytes, n);
                   });
}

}  // namespace osc::op
