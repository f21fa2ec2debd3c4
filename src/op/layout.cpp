// Builds layouts: merges touching blocks, finds regular strides, computes true bounds.
#include "op/layout.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

#include "op/kernels.h"

namespace osc::op {

namespace {

__extension__ using Wide = __int128;

bool is_padded(Basic basic) {
    return element_size(basic) != significant_size(basic);
}

std::ptrdiff_t last_end(const Run& run) {
    return run.disp + static_cast<std::ptrdiff_t>(run.count - 1) * run.stride + static_cast<std::ptrdiff_t>(run.bytes);
}

void append(RunList& runs, Run run);

// `run` starts where the last block of `runs` ends: the two blocks become one, the rest follows.
void append_touching(RunList& runs, const Run& run) {
    Run& last = runs.back();
    Run merged{last.disp + static_cast<std::ptrdiff_t>(last.count - 1) * last.stride, last.bytes + run.bytes};
    if (--last.count == 0) runs.pop_back();
    append(runs, merged);
    if (run.count > 1) append(runs, {run.disp + run.stride, run.bytes, run.stride, run.count - 1});
}

// Appends in typemap order; O(1), so that a list of a million blocks is built in one pass.
void append(RunList& runs, Run run) {
    if (run.bytes == 0 || run.count == 0) return;
    if (run.count > 1 && run.stride == static_cast<std::ptrdiff_t>(run.bytes)) {
        run.bytes *= run.count;
        run.count = 1;
    }
    if (!runs.empty()) {
        Run& last = runs.back();
        if (run.disp == last_end(last)) return append_touching(runs, run);
        const std::ptrdiff_t stride = last.count > 1 ? last.stride : run.disp - last.disp;
        const bool continues = run.disp == last.disp + static_cast<std::ptrdiff_t>(last.count) * stride;
        if (run.bytes == last.bytes && continues && (run.count == 1 || run.stride == stride)) {
            last.stride = stride;
            last.count += run.count;
            return;
        }
    }
    if (runs.size() == runs.most) throw std::length_error("datatype with too many irregular blocks");
    if (run.count == 1) run.stride = 0;
    runs.push_back(run);
}

// Groups of an element that is one run are often one run too; else each group is appended by itself.
void append_groups(RunList& runs, std::ptrdiff_t disp, std::size_t count, std::size_t blocklength,
                   std::ptrdiff_t stride, const Shape& child) {
    if (child.runs().size() == 1) {
        Run run = child.runs().front();
        if (fold(run, child.extent(), blocklength) && fold(run, stride, count)) {
            run.disp += disp;
            return append(runs, run);
        }
    }
    if (count > 1) {
        for (std::size_t i = 0; i < count; ++i, disp += stride)
            append_groups(runs, disp, 1, blocklength, stride, child);
        return;
    }
    for (std::size_t i = 0; i < blocklength; ++i, disp += child.extent()) {
        for (Run run : child.runs()) {
            run.disp += disp;
            append(runs, run);
        }
    }
}

}  // namespace

bool fold(Run& run, std::ptrdiff_t extent, std::size_t times) noexcept {
    if (times == 1) return true;
    if (run.count == 1) {
        if (extent == static_cast<std::ptrdiff_t>(run.bytes)) {
            run.bytes *= times;
        } else {
            run.stride = extent;
            run.count = times;
        }
        return true;
    }
    if (extent != run.stride * static_cast<std::ptrdiff_t>(run.count)) return false;
    run.count *= times;
    return true;
}

Shape::Shape(std::vector<Run> runs, std::ptrdiff_t extent) : runs_(std::move(runs)), extent_(extent) {
    std::erase_if(runs_, [](const Run& run) { return run.bytes == 0 || run.count == 0; });
    runs_.shrink_to_fit();
    std::ptrdiff_t lo = std::numeric_limits<std::ptrdiff_t>::max();
    std::ptrdiff_t hi = std::numeric_limits<std::ptrdiff_t>::min();
    for (const Run& run : runs_) {
        size_ += run.bytes * run.count;
        blocks_ += run.count;
        const std::ptrdiff_t last = run.disp + static_cast<std::ptrdiff_t>(run.count - 1) * run.stride;
        lo = std::min({lo, run.disp, last});
        hi = std::max({hi, run.disp + static_cast<std::ptrdiff_t>(run.bytes), last_end(run)});
    }
    if (runs_.empty()) return;
    true_lb_ = lo;
    true_extent_ = static_cast<std::size_t>(hi - lo);
    wraps_ = extent == last_end(runs_.back()) - runs_.front().disp;
}

Layout Layout::leaf(Basic basic) {
    const auto extent = static_cast<std::ptrdiff_t>(element_size(basic));
    const DataRuns data = data_runs(basic);
    RunList runs;
    for (std::size_t i = 0; i < data.count; ++i)
        append(runs, {data.run[i].offset, data.run[i].size});
    Layout layout;
    layout.data_ = Shape(std::move(runs), extent);
    if (is_padded(basic))
        layout.padded_ = std::make_shared<const Shape>(std::vector{Run{0, element_size(basic)}}, extent);
    layout.basic_ = basic;
    layout.contiguous_ = basic != Basic::None && !layout.padded_;
    return layout;
}

bool Layout::bounds(std::size_t count, Bounds& out) const noexcept {
    out = {};
    if (count == 0 || size() == 0) return true;
    std::ptrdiff_t span = 0;
    std::ptrdiff_t last = 0;
    std::ptrdiff_t bytes = 0;
    if (__builtin_mul_overflow(size(), count, &bytes) || __builtin_mul_overflow(extent(), count - 1, &span))
        return false;
    if (__builtin_add_overflow(true_lb(), span, &last)) return false;
    out.lo = std::min(true_lb(), last);
    return !__builtin_add_overflow(std::max(true_lb(), last), static_cast<std::ptrdiff_t>(true_extent()), &out.hi);
}

void LayoutBuilder::note_basic(const Layout& child) {
    if (mixed_) return;
    if (basic_ == Basic::None && data_.empty() && child.basic() != Basic::None) {
        basic_ = child.basic();
    } else if (basic_ != child.basic() || basic_ == Basic::None) {
        mixed_ = true;
        basic_ = Basic::None;
        padded_.clear();
    }
}

void LayoutBuilder::add_strided(std::ptrdiff_t disp, std::size_t count, std::size_t blocklength, std::ptrdiff_t stride,
                                const Layout& child) {
    if (count == 0 || blocklength == 0 || child.size() == 0) return;
    const Shape& widest = child.elements();
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, blocklength, &bytes) || __builtin_mul_overflow(bytes, widest.size(), &bytes) ||
        __builtin_add_overflow(bytes, bytes_, &bytes_) || bytes_ > std::size_t{max_displacement})
        throw std::overflow_error("datatype of too many bytes");
    // From the origin of the first element to those of the last group, and of its last element.
    const Wide group = Wide{stride} * Wide{count - 1};
    const Wide element = Wide{child.extent()} * Wide{blocklength - 1};
    const Wide lo = disp + std::min<Wide>(group, 0) + std::min<Wide>(element, 0) + widest.true_lb();
    const Wide hi =
        disp + std::max<Wide>(group, 0) + std::max<Wide>(element, 0) + widest.true_lb() + Wide{widest.true_extent()};
    if (lo < -max_displacement || hi > max_displacement) throw std::overflow_error("datatype of too far bytes");
    note_basic(child);
    append_groups(data_, disp, count, blocklength, stride, child.data());
    if (is_padded(basic_)) append_groups(padded_, disp, count, blocklength, stride, child.elements());
}

Layout LayoutBuilder::finish(std::ptrdiff_t extent) {
    Layout layout;
    layout.data_ = Shape(data_.take(), extent);
    if (is_padded(basic_)) layout.padded_ = std::make_shared<const Shape>(padded_.take(), extent);
    layout.basic_ = std::exchange(basic_, Basic::None);
    bytes_ = 0;
    mixed_ = false;
    layout.contiguous_ = layout.data_.blocks() == 1 && layout.data_.wraps() && layout.data_.first_disp() == 0;
    return layout;
}

}  // namespace osc::op
