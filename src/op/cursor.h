// Walks the data of `count` elements of a Shape, alone or two side by side. Owns only positions: the Shape must outlive
// its cursors. Nothing here allocates. The walks are templates so that the copy is inlined into their loops.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <span>

#include "op/kernels.h"
#include "op/layout.h"

namespace osc::op {

/// Equal pieces ahead of a cursor: `blocks` >= 1 pieces of `bytes` bytes, `stride` bytes apart, the first at `off`.
struct Pieces {
    std::ptrdiff_t off;
    std::size_t bytes;
    std::ptrdiff_t stride;
    std::size_t blocks;

    [[nodiscard]] bool overlap() const noexcept {
        return blocks != 1 && static_cast<std::size_t>(stride < 0 ? -stride : stride) < bytes;
    }
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
    [[nodiscard]] Pieces ahead() const noexcept {
        if (left_ != run_.bytes || block_ >= plain_) return {off_, left_, 0, 1};
        return {off_, left_, run_.stride, plain_ - block_};
    }
    /// Steps over `n` <= ahead().blocks whole pieces.
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

    /// The bytes of whole pieces ahead that lie in [lo, hi); of all of them, or of as many as are found cheaply. 0 if
    /// the next one does not.
    [[nodiscard]] std::size_t bytes_within(std::ptrdiff_t lo, std::ptrdiff_t hi) const noexcept;
    /// Whether the data are more than one run.
    [[nodiscard]] bool in_list() const noexcept { return shape_ != nullptr; }
    /// Whether lists of blocks are all that lies ahead; if so, whether all blocks have the length of the next piece.
    [[nodiscard]] bool is_list() const noexcept { return shape_ != nullptr && shape_->list(); }
    [[nodiscard]] bool same_length() const noexcept {
        return shape_->same_length() && !shape_->wraps() && left_ == run_.bytes;
    }
    /// Bytes from one piece to the next one, on average.
    [[nodiscard]] std::size_t spacing() const noexcept {
        return shape_ != nullptr ? shape_->true_extent() / shape_->blocks()
                                 : static_cast<std::size_t>(std::abs(run_.stride));
    }
    /// Steps over whole runs, if the cursor stands before one, while they are no more than `bytes` bytes together.
    /// Calls `f(displacement, runs, shape)` for adjacent ones, in typemap order, at most
    /// `most_runs`; their displacements count from `displacement`.
    template <class F>
    void for_each_list(std::size_t bytes, F&& f, std::size_t most_runs = ~std::size_t{0}) {
        if (shape_ == nullptr || block_ != 0 || left_ != run_.bytes) return;
        const auto runs = shape_->runs();
        // The last run may touch the next element.
        const std::size_t plain = runs.size() - (shape_->wraps() ? 1 : 0);
        const std::size_t most = std::min(bytes, remaining_);
        std::size_t left = most;
        for (;;) {
            const std::size_t first = index_;
            const std::size_t last = std::min(plain, most_runs < plain - first ? first + most_runs : plain);
            if (first == 0 && last == runs.size() && left >= shape_->turn_bytes()) {
                index_ = last;
                left -= shape_->turn_bytes();
            } else {
                for (; index_ < last && left >= runs[index_].bytes * runs[index_].count; ++index_)
                    left -= runs[index_].bytes * runs[index_].count;
            }
            most_runs -= index_ - first;
            if (index_ != first) f(repetition_, runs.subspan(first, index_ - first), *shape_);
            if (index_ < runs.size() || left == 0) break;
            next_repetition();
        }
        remaining_ -= most - left;
        if (remaining_ == 0) {
            left_ = 0;
        } else if (left != most) {
            if (index_ == runs.size()) next_repetition();
            enter_run();
        }
    }

  private:
    void next_piece() noexcept;
    void load(std::size_t block) noexcept;
    void enter_run(std::size_t block = 0) noexcept;
    void next_repetition() noexcept;

    const Shape* shape_ = nullptr;  // null when all is one run
    Run run_;                       // the current run, its displacement counted from the base
    std::size_t remaining_ = 0;     // bytes of data from here to the end
    std::size_t elements_ = 1;
    std::size_t element_ = 0;
    std::array<std::size_t, max_loops> turn_{};  // of each loop of the shape
    std::ptrdiff_t repetition_ = 0;              // displacement of this turn of all loops in this element
    std::size_t index_ = 0;                      // of run_ in the shape
    std::size_t block_ = 0;                      // in run_
    std::size_t plain_ = 0;  // blocks of run_ that are pieces of their own; the last one may touch the next element
    std::ptrdiff_t off_ = 0;
    std::size_t left_ = 0;
};

/// Calls `f(origin_off, target_off, bytes)` for every piece that is contiguous on both sides, in typemap order. Both
/// sides should have the same number of bytes; the walk ends with the shorter one.
template <class F>
inline void for_each_pair(const Layout& origin, std::size_t origin_count, const Layout& target,
                          std::size_t target_count, F&& f) {
    Cursor a(origin.data(), origin_count);
    Cursor b(target.data(), target_count);
    while (!a.done() && !b.done()) {
        const std::size_t bytes = std::min(a.bytes(), b.bytes());
        f(a.offset(), b.offset(), bytes);
        a.advance(bytes);
        b.advance(bytes);
    }
}

}  // namespace osc::op
