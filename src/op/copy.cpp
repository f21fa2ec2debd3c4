// The copies behind copy.h.
// Build: -O3
#include "op/copy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/copy_bytes.h"

namespace osc::op {

namespace {

template <class Word>
void move_words(std::byte* dst, const std::byte* src, std::size_t a, std::size_t b, std::size_t c) {
    Word words[4];
    std::memcpy(&words[0], src, sizeof(Word));
    std::memcpy(&words[1], src + a, sizeof(Word));
    std::memcpy(&words[2], src + b, sizeof(Word));
    std::memcpy(&words[3], src + c, sizeof(Word));
    std::memcpy(dst, &words[0], sizeof(Word));
    std::memcpy(dst + a, &words[1], sizeof(Word));
    std::memcpy(dst + b, &words[2], sizeof(Word));
    std::memcpy(dst + c, &words[3], sizeof(Word));
}

// Copies one piece of a list, whose lengths are mixed: a jump by the length would be predicted wrongly. Words that
// overlap make up every length of 8 to 32 bytes.
void copy_block(std::byte* dst, const std::byte* src, std::size_t bytes) {
    if (__builtin_expect(bytes - 8 <= 24, 1)) {
        const std::size_t last = bytes - 8;
        move_words<std::uint64_t>(dst, src, std::min<std::size_t>(8, last), bytes < 16 ? 0 : bytes - 16, last);
    } else if (bytes == 4) {
        std::memcpy(dst, src, 4);
    } else {
        base::copy_bytes(dst, src, bytes);
    }
}

// A size known at compile time makes the copy of one piece a few moves instead of a call.
template <std::size_t Bytes>
void copy_pieces(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                 std::size_t n) {
    for (; n >= 4; n -= 4, dst += 4 * dst_stride, src += 4 * src_stride) {
        std::memcpy(dst, src, Bytes);
        std::memcpy(dst + dst_stride, src + src_stride, Bytes);
        std::memcpy(dst + 2 * dst_stride, src + 2 * src_stride, Bytes);
        std::memcpy(dst + 3 * dst_stride, src + 3 * src_stride, Bytes);
    }
    for (; n != 0; --n, dst += dst_stride, src += src_stride)
        std::memcpy(dst, src, Bytes);
}

// Copies `n` pieces of `bytes` bytes, each side advancing by its own stride in bytes. The sides must not overlap.
void copy_strided(std::byte* dst, std::ptrdiff_t dst_stride, const std::byte* src, std::ptrdiff_t src_stride,
                  std::size_t bytes, std::size_t n) noexcept {
    const auto copied = [&]<std::size_t... Known>(std::index_sequence<Known...>) {
        return ((bytes == Known && (copy_pieces<Known>(dst, dst_stride, src, src_stride, n), true)) || ...);
    };
    if (copied(std::index_sequence<1, 2, 4, 8, 12, 16, 24, 32, 64>())) return;
    for (std::size_t i = 0; i < n; ++i, dst += dst_stride, src += src_stride)
        base::copy_bytes(dst, src, bytes);
}

// Copies the blocks of a list, `Bytes` bytes each.
template <bool kPack, std::size_t Bytes>
void transfer_blocks(std::byte* base, std::byte* array, std::span<const Run> runs) {
#pragma GCC unroll 4
    for (const Run& run : runs) {
        std::memcpy(kPack ? array : base + run.disp, kPack ? base + run.disp : array, Bytes);
        array += Bytes;
    }
}

template <bool kPack>
std::size_t transfer(Cursor& cursor, const void* base, std::byte* array, std::size_t most) noexcept {
    std::size_t done = 0;
    const auto strided = [&](std::ptrdiff_t offset, std::ptrdiff_t stride, std::size_t bytes, std::size_t n) {
        std::byte* const here = at(base, offset);
        if constexpr (kPack)
            copy_strided(array + done, static_cast<std::ptrdiff_t>(bytes), here, stride, bytes, n);
        else
            copy_strided(here, stride, array + done, static_cast<std::ptrdiff_t>(bytes), bytes, n);
        done += n * bytes;
    };
    const auto list = [&](std::ptrdiff_t disp, std::span<const Run> runs, const Shape& shape) {
        std::byte* const here = at(base, disp);
        const auto known = [&]<std::size_t... Known>(std::index_sequence<Known...>) {
            return ((runs.front().bytes == Known && (transfer_blocks<kPack, Known>(here, array + done, runs), true)) ||
                    ...);
        };
        if (shape.list() && shape.same_length() && known(std::index_sequence<4, 8, 16, 32>())) {
            done += runs.size() * runs.front().bytes;
        } else if (shape.list()) {
            std::byte* to = array + done;
            for (const Run& run : runs) {
                copy_block(kPack ? to : here + run.disp, kPack ? here + run.disp : to, run.bytes);
                to += run.bytes;
            }
            done = static_cast<std::size_t>(to - array);
        } else {
            for (const Run& run : runs)
                strided(disp + run.disp, run.stride, run.bytes, run.count);
        }
    };
    while (done != most && !cursor.done()) {
        cursor.for_each_list(most - done, list);
        if (cursor.done()) break;
        const Pieces ahead = cursor.ahead();
        const std::size_t n = std::min(ahead.blocks, (most - done) / ahead.bytes);
        if (n != 0) {
            strided(ahead.off, ahead.stride, ahead.bytes, n);
            cursor.advance_pieces(n);
        } else if (done == 0) {
            strided(ahead.off, 0, most, 1);
            cursor.advance(most);
        } else {
            break;
        }
    }
    return done;
}

}  // namespace

std::size_t pack(Cursor& from, const void* base, void* array, std::size_t bytes) noexcept {
    return transfer<true>(from, base, static_cast<std::byte*>(array), bytes);
}

std::size_t unpack(Cursor& to, void* base, const void* array, std::size_t bytes) noexcept {
    return transfer<false>(to, base, static_cast<std::byte*>(const_cast<void*>(array)), bytes);
}

void copy(const Layout& dst_layout, std::size_t dst_count, void* dst, const Layout& src_layout, std::size_t src_count,
          const void* src) noexcept {
    const Shape& to = dst_layout.data();
    const Shape& from = src_layout.data();
    const std::size_t bytes = std::min(to.size() * dst_count, from.size() * src_count);
    if (to.one_piece(dst_count)) {
        if (from.one_piece(src_count))
            return copy_strided(at(dst, to.first_disp()), 0, at(src, from.first_disp()), 0, bytes, bytes != 0 ? 1 : 0);
        Cursor source(from, src_count);
        transfer<true>(source, src, at(dst, to.first_disp()), bytes);
        return;
    }
    Cursor target(to, dst_count);
    if (from.one_piece(src_count)) {
        transfer<false>(target, dst, at(src, from.first_disp()), bytes);
        return;
    }
    // Rows of equal pieces at once; other short pieces by an array that stays in the first cache, and ends where a
    // piece of the source does.
    constexpr std::size_t kRow = 4;
    constexpr std::size_t kLongPiece = 256;
    alignas(64) std::byte array[4096];
    Cursor source(from, src_count);
    for (std::size_t left = bytes; left != 0;) {
        const Pieces here = source.ahead();
        const Pieces there = target.ahead();
        if (const std::size_t row = std::min(here.blocks, there.blocks);
            row >= kRow && here.bytes == there.bytes && row * here.bytes <= left) {
            copy_strided(at(dst, there.off), there.stride, at(src, here.off), here.stride, here.bytes, row);
            source.advance_pieces(row);
            target.advance_pieces(row);
            left -= row * here.bytes;
            continue;
        }
        if (const std::size_t both = std::min({source.bytes(), target.bytes(), left}); both >= kLongPiece) {
            base::copy_bytes(at(dst, target.offset()), at(src, source.offset()), both);
            source.advance(both);
            target.advance(both);
            left -= both;
            continue;
        }
        const std::size_t packed = transfer<true>(source, src, array, std::min(left, sizeof array));
        for (std::size_t done = 0; done != packed;)
            done += transfer<false>(target, dst, array + done, packed - done);
        left -= packed;
    }
}

}  // namespace osc::op
