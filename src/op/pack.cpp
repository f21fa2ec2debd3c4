// The copies behind pack.h.
#include "op/pack.h"

#include <cstring>

#include "diag/inject.h"

namespace osc::op {

namespace {

// A size known at compile time makes the copy of one piece a few moves instead of a call.
template <std::size_t Bytes>
void copy_pieces(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                 std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, dst += dst_stride, src += src_stride)
        std::memcpy(dst, src, Bytes);
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
    auto* to = static_cast<std::byte*>(dst);
    const auto* from = static_cast<const std::byte*>(src);
    const Shape& d = dst_layout.data();
    const Shape& s = src_layout.data();
    if (d.one_piece(dst_count) && s.one_piece(src_count)) {
        std::size_t bytes = std::min(d.size() * dst_count, s.size() * src_count);
        if (OSC_FAULT(last_byte_lost) && bytes != 0) --bytes;
        if (bytes != 0) copy_strided(to + d.first_disp(), 0, from + s.first_disp(), 0, bytes, 1);
        return;
    }
    Cursor a(d, dst_count);
    Cursor b(s, src_count);
    for_each_batch(a, b,
                   [to, from](std::ptrdiff_t a_off, std::ptrdiff_t a_stride, std::ptrdiff_t b_off,
                              std::ptrdiff_t b_stride, std::size_t bytes,
                              std::size_t n) { copy_strided(to + a_off, a_stride, from + b_off, b_stride, bytes, n); });
}

std::size_t pack(Cursor& from, const void* base, void* out, std::size_t capacity) noexcept {
    Cursor to(std::min(capacity, from.remaining()));
    const std::size_t bytes = to.remaining();
    const auto* src = static_cast<const std::byte*>(base);
    auto* dst = static_cast<std::byte*>(out);
    for_each_batch(to, from,
                   [dst, src](std::ptrdiff_t to_off, std::ptrdiff_t to_stride, std::ptrdiff_t from_off,
                              std::ptrdiff_t from_stride, std::size_t piece, std::size_t n) {
                       copy_strided(dst + to_off, to_stride, src + from_off, from_stride, piece, n);
                   });
    return bytes;
}

std::size_t unpack(Cursor& to, void* base, const void* in, std::size_t length) noexcept {
    Cursor from(std::min(length, to.remaining()));
    const std::size_t bytes = from.remaining();
    auto* dst = static_cast<std::byte*>(base);
    const auto* src = static_cast<const std::byte*>(in);
    for_each_batch(to, from,
                   [dst, src](std::ptrdiff_t to_off, std::ptrdiff_t to_stride, std::ptrdiff_t from_off,
                              std::ptrdiff_t from_stride, std::size_t piece, std::size_t n) {
                       copy_strided(dst + to_off, to_stride, src + from_off, from_stride, piece, n);
                   });
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
