// The copies behind pack.h.
#include "op/pack.h"

#include <cstring>

namespace osc::op {

namespace {

// A size known at compile time makes the copy of one piece a few moves instead of a call.
template <std::size_t Bytes>
void copy_pieces(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                 std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, dst += dst_stride, src += src_stride)
        std::memcpy(dst, src, Bytes);
}

// The one walk: from one position to another, until either ends. Inlined, so that the cursors stay in registers.
[[gnu::always_inline]] inline void copy_between(Cursor& to, void* dst, Cursor& from, const void* src) {
    for_each_batch(to, from,
                   [dst = static_cast<std::byte*>(dst), src = static_cast<const std::byte*>(src)](
                       std::ptrdiff_t to_off, std::ptrdiff_t to_stride, std::ptrdiff_t from_off,
                       std::ptrdiff_t from_stride, std::size_t bytes, std::size_t n) {
                       copy_strided(dst + to_off, to_stride, src + from_off, from_stride, bytes, n);
                   });
}

}  // namespace

void copy_strided(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                  std::size_t bytes, std::size_t n) noexcept {
    switch (bytes) {
        case 1:
            return copy_pieces<1>(dst, dst_stride, src, src_stride, n);
        case 2:
            return copy_pieces<2>(dst, dst_stride, src, src_stride, n);
        case 4:
            return copy_pieces<4>(dst, dst_stride, src, src_stride, n);
        case 8:
            return copy_pieces<8>(dst, dst_stride, src, src_stride, n);
        case 12:
            return copy_pieces<12>(dst, dst_stride, src, src_stride, n);
        case 16:
            return copy_pieces<16>(dst, dst_stride, src, src_stride, n);
        case 24:
            return copy_pieces<24>(dst, dst_stride, src, src_stride, n);
        case 32:
            return copy_pieces<32>(dst, dst_stride, src, src_stride, n);
        case 64:
            return copy_pieces<64>(dst, dst_stride, src, src_stride, n);
        default:
            for (std::size_t i = 0; i < n; ++i, dst += dst_stride, src += src_stride)
                std::memcpy(dst, src, bytes);
    }
}

void copy(const Layout& dst_layout, std::size_t dst_count, void* dst, const Layout& src_layout, std::size_t src_count,
          const void* src) noexcept {
    const Shape& d = dst_layout.data();
    const Shape& s = src_layout.data();
    if (d.one_piece(dst_count) && s.one_piece(src_count)) {
        const std::size_t bytes = std::min(d.size() * dst_count, s.size() * src_count);
        if (bytes != 0)
            copy_strided(static_cast<std::byte*>(dst) + d.first_disp(), 0,
                         static_cast<const std::byte*>(src) + s.first_disp(), 0, bytes, 1);
        return;
    }
    Cursor to(d, dst_count);
    Cursor from(s, src_count);
    copy_between(to, dst, from, src);
}

std::size_t pack(Cursor& from, const void* base, void* out, std::size_t capacity) noexcept {
    Cursor to(std::min(capacity, from.remaining()));
    const std::size_t bytes = to.remaining();
    copy_between(to, out, from, base);
    return bytes;
}

std::size_t unpack(Cursor& to, void* base, const void* in, std::size_t length) noexcept {
    Cursor from(std::min(length, to.remaining()));
    const std::size_t bytes = from.remaining();
    copy_between(to, base, from, in);
    return bytes;
}

std::size_t pack(const Shape& shape, std::size_t count, const void* base, std::size_t offset, void* out,
                 std::size_t capacity) noexcept {
    Cursor from(shape, count);
    if (offset >= from.remaining()) return 0;
    from.seek(offset);
    return pack(from, base, out, capacity);
}

std::size_t unpack(const Shape& shape, std::size_t count, void* base, std::size_t offset, const void* in,
                   std::size_t length) noexcept {
    Cursor to(shape, count);
    if (offset >= to.remaining()) return 0;
    to.seek(offset);
    return unpack(to, base, in, length);
}

}  // namespace osc::op
