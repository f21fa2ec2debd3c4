// Writing and reading descriptions of pieces.
// Build: -O3
#include "net/shape.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace osc::net {
namespace {

bool is_far(std::int64_t disp) {
    return disp < -op::max_displacement || disp > op::max_displacement;
}

}  // namespace

ShapeWriter::ShapeWriter(op::Cursor& to, std::size_t most_shape, std::size_t most_data, std::size_t unit)
    : first_(to.offset()), most_(std::min(most_shape, kLongest) / kShapeUnit * kShapeUnit) {
    const auto bytes = static_cast<std::uint32_t>(to.bytes());
    const bool listed = to.is_list() && (to.same_length() ? write_list<ShapePlace>(to, most_data, bytes)
                                                          : write_list<ShapeStep>(to, most_data, kSteps) ||
                                                                write_list<ShapeBlock>(to, most_data, kBlocks));
    if (!listed) write_runs(to, most_data, unit);
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
        std::memcpy(bytes_ + size_, &run, sizeof run);
        size_ += sizeof run;
        ++head_.count;
    }
}

template <class Entry>
bool ShapeWriter::write_list(op::Cursor& to, std::size_t most_data, std::uint32_t form) {
    op::Cursor at = to;
    auto* const entries = reinterpret_cast<Entry*>(bytes_ + sizeof head_);
    const std::size_t most = room<Entry>();
    std::size_t count = 0;
    std::size_t data = 0;
    std::ptrdiff_t end = first_;
    bool stated = true;
    const auto list = [&](std::ptrdiff_t disp, std::span<const op::Run> runs, const op::Shape&) {
        Entry* entry = entries + count;
        std::ptrdiff_t last = end;
        bool all = true;
        for (const op::Run& run : runs) {
            const std::ptrdiff_t here = disp + run.disp;
            all &= entry++->set(here - first_, here - last, run.bytes);
            last = here + static_cast<std::ptrdiff_t>(run.bytes);
            data += run.bytes;
        }
        count += runs.size();
        end = last;
        stated &= all;
    };
    for (std::size_t before = count + 1; !at.done() && count < most && count != before;) {
        before = count;
        at.for_each_list(most_data - data, list, most - count);
        if (at.done() || count == most || at.bytes() > most_data - data) break;
        const op::Run rest{at.offset(), at.bytes()};  // of a piece that was cut, or one that touches the next element
        list(0, {&rest, 1}, {});
        at.advance(rest.bytes);
    }
    if (!stated || count == 0) return false;
    to = at;
    head_ = {static_cast<std::uint32_t>(count), form};
    data_ = data;
    size_ += count * sizeof(Entry);
    return true;
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
    op::Nest nest;
    std::uint64_t data = 0;
    const auto read = [&]<class Entry>(Entry entry, auto&& put) {
        if (head.count == 0 || head.count > (room - sizeof head) / sizeof entry) return false;
        nest.runs.resize(head.count);
        const std::byte* at = carried + sizeof head;
        bool sound = true;
        for (op::Run& run : nest.runs) {
            std::memcpy(&entry, at, sizeof entry);
            at += sizeof entry;
            sound &= put(run, entry) && run.bytes != 0;
            data += run.bytes * run.count;
        }
        return sound;
    };
    bool sound = false;
    if (head.bytes == kRuns) {
        sound = read(ShapeRun{}, [&](op::Run& run, const ShapeRun& entry) {
            run = {entry.disp, entry.bytes, entry.stride, entry.count};
            std::int64_t length = 0;
            std::int64_t end = 0;
            return run.count != 0 && run.bytes * run.count <= record.bytes &&
                   !__builtin_mul_overflow(entry.stride, entry.count - std::int64_t{1}, &length) &&
                   !__builtin_add_overflow(entry.disp, length, &end) && !is_far(entry.disp) && !is_far(end);
        });
    } else if (head.bytes == kSteps) {
        std::ptrdiff_t end = 0;
        sound = read(ShapeStep{}, [&](op::Run& run, const ShapeStep& entry) {
            run.disp = end + entry.gap;
            run.bytes = entry.bytes;
            end = run.disp + entry.bytes;
            return true;
        });
    } else if (head.bytes == kBlocks) {
        sound = read(ShapeBlock{}, [](op::Run& run, const ShapeBlock& entry) {
            run.disp = entry.disp;
            run.bytes = entry.bytes;
            return true;
        });
    } else {
        sound = read(ShapePlace{}, [&](op::Run& run, const ShapePlace& entry) {
            run.disp = entry.disp;
            run.bytes = head.bytes;
            return true;
        });
    }
    if (!sound || data != record.bytes) return false;
    shape = op::Shape(std::move(nest), 0);
    return true;
}

// The sender of a message on a node may change it meanwhile, so the copy is read.
std::shared_ptr<const op::Shape> ShapeCache::read(const Record& record, const std::byte* carried) {
    constexpr std::size_t kShort = 256;  // bytes: reading takes no longer than looking for it
    const std::span<const std::byte> sent(carried, shape_bytes(record));
    const bool keeps = sent.size() > kShort;
    if (keeps)
        for (const Kept& kept : kept_)
            if (kept.data == record.bytes && std::ranges::equal(kept.description, sent)) return kept.shape;
    Kept made{record.bytes, {sent.begin(), sent.end()}, nullptr};
    op::Shape shape;
    if (!read_shape(record, made.description.data(), shape)) return nullptr;
    made.shape = std::make_shared<const op::Shape>(std::move(shape));
    if (!keeps) return made.shape;
    Kept& oldest = kept_[made_++ % kept_.size()];
    oldest = std::move(made);
    return oldest.shape;
}

}  // namespace osc::net
