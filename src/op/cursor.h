// Walks the data of `count` elements of a Shape, alone or two side by side. Owns only positions: the Shape must outlive
// its cursors. Nothing here allocates. The pair walks are templates so that the copy or the reduction is inlined into
// their loops.
#pragma once

#include <algorithm>
#include <cstddef>

#include "op/kernels.h"
#include "op/layout.h"

namespace osc::op {

/// Equal pieces ahead of a cursor: `blocks` >= 1 pieces of `bytes` bytes, `stride` bytes apart, the first at `off`.
struct Batch {
    std::ptrdiff_t off;
    std::size_t bytes;
    std::ptrdiff_t stride;
    std::size_t blocks;
};

/// A position in the data of `count` elements; copyable, one thread at a time. Pieces are maximal: blocks
/// that touch across elements are one piece. Displacements must have been checked (Layout::bounds).
class Cursor {
  public:
    Cursor(const Shape& shape, std::size_t count) noexcept;

    [[nodiscard]] bool done() const noexcept { return remaining_ == 0; }
    /// Displacement of the next byte, and the bytes from there that are contiguous (0 when done).
    [[nodiscard]] std::ptrdiff_t offset() const noexcept { return off_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return left_; }

    /// Steps over `n` <= bytes() bytes.
    void advance(std::size_t n) noexcept {
        off_ += static_cast<std::ptrdiff_t>(n);
        left_ -= n;
        remaining_ -= n;
        if (left_ == 0 && remaining_ != 0) next_piece();
    }

    /// The equal pieces ahead; only when not done().
    [[nodiscard]] Batch batch() const noexcept {
        if (left_ != run_.bytes || block_ >= plain_) return {off_, left_, 0, 1};
        return {off_, left_, run_.stride, plain_ - block_};
    }
    /// Steps over `n` <= batch().blocks whole pieces.
    void advance_pieces(std::size_t n) noexcept {
        remaining_ -= n * left_;
        if (n == 1 || remaining_ == 0) {
            left_ = 0;
            if (remaining_ != 0) next_piece();
            return;
        }
        block_ += n - 1;
        next_piece();
    }

  private:
    void next_piece() noexcept;
    void load(std::size_t block) noexcept;

    const Shape* shape_ = nullptr;  // null when all is one run
    Run run_;                       // the current run, its displacement counted from the base
    std::size_t remaining_ = 0;     // bytes of data from here to the end
    std::size_t elements_ = 1;
    std::size_t element_ = 0;
    std::size_t index_ = 0;  // of run_ in the shape
    std::size_t block_ = 0;  // in run_
    std::size_t plain_ = 0;  // blocks of run_ that are pieces of their own; the last one may touch the next element
    std::ptrdiff_t off_ = 0;
    std::size_t left_ = 0;
};

/// Walks `a_count` elements and `b_count` elements side by side until one side ends, in batches:
/// `f(a_off, a_stride, b_off, b_stride, bytes, n)` stands for n pieces of `bytes` bytes at a_off + i * a_stride and
/// b_off + i * b_stride, in typemap order. The strides mean nothing if n == 1.
template <class F>
inline void for_each_batch(const Layout& a_layout, std::size_t a_count, const Layout& b_layout, std::size_t b_count,
                           F&& f) {
    const Shape& a_shape = a_layout.data();
    const Shape& b_shape = b_layout.data();
    if (a_shape.one_piece(a_count) && b_shape.one_piece(b_count)) {
        const std::size_t bytes = std::min(a_shape.size() * a_count, b_shape.size() * b_count);
        if (bytes != 0) f(a_shape.first_disp(), 0, b_shape.first_disp(), 0, bytes, 1);
        return;
    }
    Cursor a(a_shape, a_count);
    Cursor b(b_shape, b_count);
    while (!a.done() && !b.done()) {
        const Batch x = a.batch();
        const Batch y = b.batch();
        if (x.bytes == y.bytes) {
            const std::size_t n = std::min(x.blocks, y.blocks);
            f(x.off, x.stride, y.off, y.stride, x.bytes, n);
            a.advance_pieces(n);
            b.advance_pieces(n);
        } else if (x.bytes < y.bytes) {
            std::size_t n = x.blocks;
            if (n > 1 && n * x.bytes > y.bytes) n = y.bytes / x.bytes;
            f(x.off, x.stride, y.off, static_cast<std::ptrdiff_t>(x.bytes), x.bytes, n);
            a.advance_pieces(n);
            b.advance(n * x.bytes);
        } else {
            std::size_t n = y.blocks;
            if (n > 1 && n * y.bytes > x.bytes) n = x.bytes / y.bytes;
            f(x.off, static_cast<std::ptrdiff_t>(y.bytes), y.off, y.stride, y.bytes, n);
            a.advance(n * y.bytes);
            b.advance_pieces(n);
        }
    }
}

/// Calls `f(origin_off, target_off, bytes)` for every piece that is contiguous on both sides, in typemap order. Both
/// sides should have the same number of bytes; the walk ends with the shorter one.
template <class F>
inline void for_each_pair(const Layout& origin, std::size_t origin_count, const Layout& target,
                          std::size_t target_count, F&& f) {
    for_each_batch(origin, origin_count, target, target_count,
                   [&f](std::ptrdiff_t a_off, std::ptrdiff_t a_stride, std::ptrdiff_t b_off, std::ptrdiff_t b_stride,
                        std::size_t bytes, std::size_t n) {
                       for (std::size_t i = 0;;) {
                           f(a_off, b_off, bytes);
                           if (++i == n) break;
                           a_off += a_stride;
                           b_off += b_stride;
                       }
                   });
}

}  // namespace osc::op
