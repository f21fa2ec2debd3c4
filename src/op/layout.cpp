// Builds layouts: merges touching blocks, finds regular strides, computes true bounds.
#include "op/layout.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

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

// The runs of a layout that is being built.
class RunList {
  public:
    RunList(std::vector<Run>& runs, std::size_t most) : runs_(runs), most_(most) {}

    // Appends in typemap order; O(1), so that a list of a million blocks is built in one pass.
    void append(Run run) {
        if (run.bytes == 0 || run.count == 0) return;
        if (run.count > 1 && run.stride == static_cast<std::ptrdiff_t>(run.bytes)) {
            run.bytes *= run.count;
            run.count = 1;
        }
        if (!runs_.empty()) {
            Run& last = runs_.back();
            if (run.disp == last_end(last)) return append_touching(run);
            const std::ptrdiff_t stride = last.count > 1 ? last.stride : run.disp - last.disp;
            const bool continues = run.disp == last.disp + static_cast<std::ptrdiff_t>(last.count) * stride;
            if (run.bytes == last.bytes && continues && (run.count == 1 || run.stride == stride)) {
                last.stride = stride;
                last.count += run.count;
                return;
            }
        }
        if (runs_.size() == most_) throw std::length_error("datatype with too many irregular blocks");
        if (run.count == 1) run.stride = 0;
        runs_.push_back(run);
    }
    void append_at(std::ptrdiff_t disp, std::span<const Run> runs) {
        for (Run run : runs) {
            run.disp += disp;
            append(run);
        }
    }
    // `loops` repetitions of `runs`, the outermost loop first.
    void append_loops(std::ptrdiff_t disp, std::span<const Loop> loops, std::span<const Run> runs) {
        if (loops.empty()) return append_at(disp, runs);
        for (std::size_t i = 0; i < loops.front().count; ++i, disp += loops.front().stride)
            append_loops(disp, loops.subspan(1), runs);
    }

  private:
    // `run` starts where the last block ends: the two blocks become one, the rest follows.
    void append_touching(const Run& run) {
        Run& last = runs_.back();
        Run merged{last.disp + static_cast<std::ptrdiff_t>(last.count - 1) * last.stride, last.bytes + run.bytes};
        if (--last.count == 0) runs_.pop_back();
        append(merged);
        if (run.count > 1) append({run.disp + run.stride, run.bytes, run.stride, run.count - 1});
    }

    std::vector<Run>& runs_;
    const std::size_t most_;
};

// From the first byte of the nest to the end of its last block.
std::ptrdiff_t length(const Nest& nest) {
    std::ptrdiff_t end = last_end(nest.runs.back()) - nest.runs.front().disp;
    for (const Loop& loop : nest.loops)
        end += static_cast<std::ptrdiff_t>(loop.count - 1) * loop.stride;
    return end;
}

// Repeats the nest. False, and the nest as it was, if the repetitions touch or there are too many loops.
bool repeat(Nest& nest, std::ptrdiff_t stride, std::size_t count) {
    if (count == 1) return true;
    if (nest.loops.empty() && nest.runs.size() == 1 && fold(nest.runs.front(), stride, count)) return true;
    if (length(nest) == stride) return false;
    if (!nest.loops.empty()) {
        Loop& outer = nest.loops.front();
        if (outer.stride * static_cast<std::ptrdiff_t>(outer.count) == stride) {
            outer.count *= count;
            return true;
        }
    }
    if (nest.loops.size() == max_loops) return false;
    nest.loops.insert(nest.loops.begin(), {stride, count});
    return true;
}

// Runs of a few blocks between others cost more than blocks alone, which a loop without jumps copies.
void make_list(std::vector<Run>& runs) {
    constexpr std::size_t kFew = 4;
    std::size_t blocks = 0;
    for (const Run& run : runs)
        blocks += run.count;
    if (runs.size() < kFew || blocks == runs.size() || blocks >= kFew * runs.size()) return;
    std::vector<Run> list;
    list.reserve(blocks);
    for (const Run& run : runs)
        for (std::size_t i = 0; i < run.count; ++i)
            list.push_back({run.disp + static_cast<std::ptrdiff_t>(i) * run.stride, run.bytes});
    runs.swap(list);
}

// Makes a list of runs of the loops.
void unroll(Nest& nest, std::size_t most) {
    if (nest.loops.empty()) return;
    const Nest from = std::exchange(nest, {});
    RunList(nest.runs, most).append_loops(0, from.loops, from.runs);
}

// Appends `count` groups of `blocklength` elements. Loops that have a neighbour are unrolled.
void append_groups(Nest& to, std::size_t most, std::ptrdiff_t disp, std::size_t count, std::size_t blocklength,
                   std::ptrdiff_t stride, const Shape& child) {
    if (!to.runs.empty() && child.runs().size() == 1 && child.loops().empty()) {
        Run run = child.runs().front();
        if (fold(run, child.extent(), blocklength) && fold(run, stride, count)) {
            run.disp += disp;
            unroll(to, most);
            return RunList(to.runs, most).append(run);
        }
    }
    Nest groups{{child.runs().begin(), child.runs().end()}, {child.loops().begin(), child.loops().end()}};
    for (Run& run : groups.runs)
        run.disp += disp;
    const auto repeat_or_unroll = [&](std::ptrdiff_t distance, std::size_t times) {
        if (repeat(groups, distance, times)) return;
        groups.loops.insert(groups.loops.begin(), {distance, times});
        unroll(groups, most);
    };
    repeat_or_unroll(child.extent(), blocklength);
    repeat_or_unroll(stride, count);
    if (to.runs.empty()) {
        to = std::move(groups);
    } else {
        unroll(to, most);
        RunList(to.runs, most).append_loops(0, groups.loops, groups.runs);
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

Shape::Shape(Nest nest, std::ptrdiff_t extent) : nest_(std::move(nest)), extent_(extent) {
    std::vector<Run>& runs = nest_.runs;
    std::erase_if(runs, [](const Run& run) { return run.bytes == 0 || run.count == 0; });
    if (runs.empty()) return;
    make_list(runs);
    runs.shrink_to_fit();
    std::ptrdiff_t lo = std::numeric_limits<std::ptrdiff_t>::max();
    std::ptrdiff_t hi = std::numeric_limits<std::ptrdiff_t>::min();
    std::size_t size = 0;
    std::size_t blocks = 0;
    std::size_t differ = 0;
    const std::size_t bytes = runs.front().bytes;
    for (const Run& run : runs) {
        const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(run.count - 1) * run.stride;
        size += run.bytes * run.count;
        blocks += run.count;
        differ |= run.bytes ^ bytes;
        lo = std::min(lo, run.disp + std::min<std::ptrdiff_t>(last, 0));
        hi = std::max(hi, run.disp + std::max<std::ptrdiff_t>(last, 0) + static_cast<std::ptrdiff_t>(run.bytes));
    }
    list_ = blocks == runs.size();
    same_length_ = differ == 0;
    for (const Loop& loop : nest_.loops) {
        const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(loop.count - 1) * loop.stride;
        (last < 0 ? lo : hi) += last;
    }
    turn_bytes_ = size;
    size_ = size * nest_.turns();
    blocks_ = blocks * nest_.turns();
    true_lb_ = lo;
    true_extent_ = static_cast<std::size_t>(hi - lo);
    wraps_ = extent == length(nest_);
}

Layout Layout::leaf(Basic basic) {
    const auto extent = static_cast<std::ptrdiff_t>(element_size(basic));
    const DataRuns data = data_runs(basic);
    Nest nest;
    for (std::size_t i = 0; i < data.count; ++i)
        RunList(nest.runs, max_runs).append({data.run[i].offset, data.run[i].size});
    Layout layout;
    layout.data_ = Shape(std::move(nest), extent);
    if (is_padded(basic)) layout.padded_ = std::make_shared<const Shape>(Nest{{{0, element_size(basic)}}, {}}, extent);
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
    if (basic_ == Basic::None && data_.runs.empty() && child.basic() != Basic::None) {
        basic_ = child.basic();
    } else if (basic_ != child.basic() || basic_ == Basic::None) {
        mixed_ = true;
        basic_ = Basic::None;
        padded_ = {};
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
    append_groups(data_, most_, disp, count, blocklength, stride, child.data());
    if (is_padded(basic_)) append_groups(padded_, most_, disp, count, blocklength, stride, child.elements());
}

Layout LayoutBuilder::finish(std::ptrdiff_t extent) {
    Layout layout;
    layout.data_ = Shape(std::exchange(data_, {}), extent);
    if (is_padded(basic_)) layout.padded_ = std::make_shared<const Shape>(std::exchange(padded_, {}), extent);
    layout.basic_ = std::exchange(basic_, Basic::None);
    bytes_ = 0;
    mixed_ = false;
    layout.contiguous_ = layout.data_.blocks() == 1 && layout.data_.wraps() && layout.data_.first_disp() == 0;
    return layout;
}

}  // namespace osc::op
