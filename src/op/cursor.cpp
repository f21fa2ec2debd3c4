// Moves a cursor from piece to piece; the parts that are not in the innermost loops.
#include "op/cursor.h"

namespace osc::op {

Cursor::Cursor(const Shape& shape, std::size_t count) noexcept : total_(shape.size() * count), remaining_(total_) {
    if (total_ == 0) return;
    run_ = shape.runs().front();
    if (shape.runs().size() != 1 || !fold(run_, shape.extent(), count)) {
        shape_ = &shape;
        elements_ = count;
    }
    load(0, 0);
}

Cursor::Cursor(std::size_t bytes) noexcept : total_(bytes), remaining_(bytes) {
    run_.bytes = bytes;
    if (bytes != 0) load(0, 0);
}

// Enters run_ at `block`, `skip` bytes into it.
void Cursor::load(std::size_t block, std::size_t skip) noexcept {
    plain_ = run_.count;
    const bool last_run = shape_ && index_ + 1 == shape_->runs().size();
    if (last_run && shape_->wraps() && element_ + 1 < elements_) --plain_;
    block_ = block;
    off_ = run_.disp + static_cast<std::ptrdiff_t>(block) * run_.stride + static_cast<std::ptrdiff_t>(skip);
    left_ = run_.bytes - skip;
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
    if (next < run_.count) return load(next, 0);
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
    load(next, 0);
}

void Cursor::seek(std::size_t position) noexcept {
    remaining_ = total_ - position;
    if (remaining_ == 0) {
        left_ = 0;
        return;
    }
    std::size_t within = position;
    if (shape_) {
        const auto runs = shape_->runs();
        element_ = position / shape_->size();
        within = position % shape_->size();
        const auto after = std::upper_bound(runs.begin(), runs.end(), within,
                                            [](std::size_t value, const Run& run) { return value < run.before; });
        index_ = static_cast<std::size_t>(after - runs.begin()) - 1;
        run_ = runs[index_];
        run_.disp += static_cast<std::ptrdiff_t>(element_) * shape_->extent();
        within -= run_.before;
    }
    load(within / run_.bytes, within % run_.bytes);
}

}  // namespace osc::op
