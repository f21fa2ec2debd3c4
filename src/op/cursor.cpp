// Moves a cursor from piece to piece; the parts that are not in the innermost loops.
// Build: -O3
#include "op/cursor.h"

#include <algorithm>

namespace osc::op {

Cursor::Cursor(const Shape& shape, std::size_t count) noexcept : remaining_(shape.size() * count) {
    if (remaining_ == 0) return;
    run_ = shape.runs().front();
    if (shape.runs().size() != 1 || !shape.loops().empty() || !fold(run_, shape.extent(), count)) {
        shape_ = &shape;
        elements_ = count;
    }
    load(0);
}

// Enters run_ at `block`.
void Cursor::load(std::size_t block) noexcept {
    plain_ = run_.count;
    const auto touches_next = [this] {
        if (index_ + 1 != shape_->runs().size() || !shape_->wraps() || element_ + 1 == elements_) return false;
        for (std::size_t i = 0; const Loop& loop : shape_->loops())
            if (turn_[i++] + 1 != loop.count) return false;
        return true;
    };
    if (shape_ != nullptr && touches_next()) --plain_;
    block_ = block;
    off_ = run_.disp + static_cast<std::ptrdiff_t>(block) * run_.stride;
    left_ = run_.bytes;
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): without a shape, plain_ counts blocks that none reaches
    if (block_ == plain_) left_ += shape_->runs().front().bytes;
}

// Enters run index_ of this repetition.
void Cursor::enter_run(std::size_t block) noexcept {
    run_ = shape_->runs()[index_];
    run_.disp += repetition_;
    load(block);
}

void Cursor::next_repetition() noexcept {
    index_ = 0;
    const auto loops = shape_->loops();
    for (std::size_t i = loops.size(); i-- > 0;) {
        repetition_ += loops[i].stride;
        if (++turn_[i] != loops[i].count) return;
        repetition_ -= loops[i].stride * static_cast<std::ptrdiff_t>(loops[i].count);
        turn_[i] = 0;
    }
    ++element_;
    repetition_ += shape_->extent();
}

std::size_t Cursor::bytes_within(std::ptrdiff_t lo, std::ptrdiff_t hi) const noexcept {
    // Blocks of a run that lie inside, the first of which is at `disp`.
    const auto inside = [lo, hi](std::ptrdiff_t disp, const Pieces& run) -> std::size_t {
        const auto bytes = static_cast<std::ptrdiff_t>(run.bytes);
        if (disp < lo || bytes > hi - disp) return 0;
        if (run.blocks == 1 || run.stride == 0) return run.blocks;
        const std::ptrdiff_t room = run.stride > 0 ? (hi - disp - bytes) / run.stride : (disp - lo) / -run.stride;
        return std::min(run.blocks, static_cast<std::size_t>(room) + 1);
    };
    const Pieces next = ahead();
    const std::size_t first = inside(next.off, next);
    std::size_t bytes = first * next.bytes;
    if (shape_ == nullptr || first != next.blocks) return bytes;
    const auto runs = shape_->runs();
    const std::size_t plain = runs.size() - (shape_->wraps() ? 1 : 0);
    for (std::size_t i = index_ + 1; i < plain; ++i) {
        const Run& run = runs[i];
        const std::size_t blocks = inside(repetition_ + run.disp, {run.disp, run.bytes, run.stride, run.count});
        bytes += blocks * run.bytes;
        if (blocks != run.count) break;
    }
    return bytes;
}

// The current piece is used up, and there is data after it.
void Cursor::next_piece() noexcept {
    std::size_t next = block_ + 1;
    if (next < plain_) {
        block_ = next;
        off_ = run_.disp + static_cast<std::ptrdiff_t>(next) * run_.stride;
        left_ = run_.bytes;
        return;
    }
    if (next < run_.count) return load(next);
    const auto runs = shape_->runs();
    const bool merged = block_ == plain_;  // the piece included the next element's first block
    next = 0;
    if (++index_ == runs.size()) {
        next_repetition();
        if (merged) {
            next = 1;
            if (runs.front().count == 1) {
                next = 0;
                ++index_;
            }
        }
    }
    enter_run(next);
}

}  // namespace osc::op
