// Moves a cursor from piece to piece; the parts that are not in the innermost loops.
// Build: -O3
#include "op/cursor.h"

namespace osc::op {

Cursor::Cursor(const Shape& shape, std::size_t count) noexcept : remaining_(shape.size() * count) {
    if (remaining_ == 0) return;
    run_ = shape.runs().front();
    if (shape.runs().size() != 1 || !fold(run_, shape.extent(), count)) {
        shape_ = &shape;
        elements_ = count;
    }
    load(0);
}

// Enters run_ at `block`.
void Cursor::load(std::size_t block) noexcept {
    plain_ = run_.count;
    const bool last_run = shape_ && index_ + 1 == shape_->runs().size();
    if (last_run && shape_->wraps() && element_ + 1 < elements_) --plain_;
    block_ = block;
    off_ = run_.disp + static_cast<std::ptrdiff_t>(block) * run_.stride;
    left_ = run_.bytes;
    if (block_ == plain_) left_ += shape_->runs().front().bytes;
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
        index_ = 0;
        ++element_;
        if (merged) {
            next = 1;
            if (runs.front().count == 1) {
                next = 0;
                ++index_;
            }
        }
    }
    run_ = runs[index_];
    run_.disp += static_cast<std::ptrdiff_t>(element_) * shape_->extent();
    load(next);
}

}  // namespace osc::op
