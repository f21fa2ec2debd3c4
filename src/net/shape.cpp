// Writing and reading descriptions of pieces.
// Build: -O3
#include "net/shape.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace osc::net {
namespace {

// Displacements that 32 bits hold.
constexpr std::size_t kNear = std::size_t{1} << 31;

bool is_far(std::int64_t disp) {
    return disp < -op::max_displacement || disp > op::max_displacement;
}

}  // namespace

template <class Entry>
void ShapeWriter::write(const Entry& entry) {
    std::memcpy(bytes_ + size_, &entry, sizeof entry);
    size_ += sizeof entry;
    ++head_.count;
}

ShapeWriter::ShapeWriter(op::Cursor& to, std::size_t most_shape, std::size_t most_data, std::size_t unit)
    : first_(to.offset()), most_(std::min(most_shape, kLongest) / kShapeUnit * kShapeUnit) {
    if (to.is_list() && to.extends() < kNear) write_blocks(to, most_data);
    if (data_ == 0) write_runs(to, most_data, unit);
    std::memcpy(bytes_, &head_, sizeof head_);
}

void ShapeWriter::write_runs(op::Cursor& to, std::size_t most_data, std::size_t unit) {
    head_.bytes = kRuns;
    while (!to.done() && room<ShapeRun>() > 0) {
        const op::Pieces next = to.ahead();
        const std::size_t n = std::min(next.blocks, (most_data - data_) / next.bytes);
        ShapeRun run{next.off - first_, next.stride, static_cast<std::uint32_t>(next.bytes),
                     static_cast<std::uint32_t>(n)};
        if (n != 0) {
            to.advance_pieces(n);
        } else {
            if (data_ != 0) return;
            run = {0, 0, static_cast<std::uint32_t>(most_data < unit ? most_data : most_data / unit * unit), 1};
            to.advance(run.bytes);
        }
        data_ += std::size_t{run.bytes} * run.count;
        write(run);
    }
}

void ShapeWriter::write_blocks(op::Cursor& to, std::size_t most_data) {
    const bool same = to.same_length();
    head_.bytes = same ? static_cast<std::uint32_t>(to.bytes()) : kMixed;
    const auto add = [&](std::ptrdiff_t disp, std::size_t bytes) {
        const auto at = static_cast<std::int32_t>(disp - first_);
        data_ += bytes;
        if (same)
            write(at);
        else
            write(ShapeBlock{at, static_cast<std::uint32_t>(bytes)});
    };
    const auto entries = [&] { return same ? room<std::int32_t>() : room<ShapeBlock>(); };
    while (!to.done() && entries() > 0) {
        const std::size_t before = data_;
        to.for_each_list(
            most_data - data_,
            [&](std::ptrdiff_t disp, std::span<const op::Run> runs, const op::Shape&) {
                for (const op::Run& run : runs)
                    add(disp + run.disp, run.bytes);
            },
            entries());
        if (to.done() || entries() == 0) return;
        if (const op::Pieces next = to.ahead(); !same && next.blocks == 1 && next.bytes <= most_data - data_) {
            add(next.off, next.bytes);
            to.advance(next.bytes);
        }
        if (data_ == before) return;
    }
}

std::byte* ShapeWriter::copy_to(std::byte* carried) const {
    const std::size_t room = std::size_t{units()} * kShapeUnit;
    std::memcpy(carried, bytes_, size_);
    std::memset(carried + size_, 0, room - size_);
    return carried + room;
}

bool read_shape(const Record& record, const std::byte* carried, op::Shape& shape) {
    const std::size_t room = shape_bytes(record);
    ShapeHead head;
    if (room < sizeof head) return false;
    std::memcpy(&head, carried, sizeof head);
    const std::size_t entry = head.bytes == kRuns    ? sizeof(ShapeRun)
                              : head.bytes == kMixed ? sizeof(ShapeBlock)
                                                     : sizeof(std::int32_t);
    if (head.count == 0 || head.count > (room - sizeof head) / entry) return false;
    const std::byte* at = carried + sizeof head;
    const auto next = [&at]<class Entry>(Entry copy) {
        std::memcpy(&copy, at, sizeof copy);
        at += sizeof copy;
        return copy;
    };
    op::Nest nest;
    nest.runs.reserve(head.count);
    std::uint64_t data = 0;
    for (std::uint32_t i = 0; i < head.count; ++i) {
        if (head.bytes == kRuns) {
            const auto run = next(ShapeRun{});
            std::int64_t length = 0;
            std::int64_t end = 0;
            const std::int64_t steps = run.count - std::int64_t{1};
            if (run.bytes == 0 || run.count == 0 || __builtin_mul_overflow(run.stride, steps, &length) ||
                __builtin_add_overflow(run.disp, length, &end) || is_far(run.disp) || is_far(end))
                return false;
            nest.runs.push_back({run.disp, run.bytes, run.stride, run.count});
            data += std::uint64_t{run.bytes} * run.count;
        } else if (head.bytes == kMixed) {
            const auto block = next(ShapeBlock{});
            if (block.bytes == 0) return false;
            nest.runs.push_back({block.disp, block.bytes});
            data += block.bytes;
        } else {
            nest.runs.push_back({next(std::int32_t{}), head.bytes});
            data += head.bytes;
        }
        if (data > record.bytes) return false;
    }
    shape = op::Shape(std::move(nest), 0);
    return data == record.bytes;
}

}  // namespace osc::net
