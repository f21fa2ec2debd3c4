// Writing records, and distributing replies.
#include "net/origin/record_transport.h"

#include <algorithm>
#include <cstring>

#include "base/copy_bytes.h"
#include "local/direct.h"
#include "op/call.h"
#include "op/copy.h"

namespace osc::net {

bool store_reply(std::span<const ReplySegment> segments, const std::byte* data, std::size_t bytes) {
    std::size_t at = 0;
    for (const ReplySegment& segment : segments) {
        const std::size_t all = segment.bytes * segment.pieces;
        if (at + all > bytes) return false;
        if (segment.copy != nullptr) {
            segment.copy(segment.to, data + at, segment.bytes / segment.width);
        } else {
            auto* to = static_cast<std::byte*>(segment.to);
            for (std::size_t done = 0; done < all; done += segment.bytes, to += segment.stride)
                shm::move_bytes(to, data + at + done, segment.bytes);
        }
        at += all;
        if (!segment.joins) at = padded(at);
    }
    return true;
}

// How much of a put or get goes into the next record: all, or up to a place where no naturally aligned word is cut.
std::size_t RecordTransport::cut(std::int64_t disp, std::size_t bytes) const {
    if (bytes <= most_) return bytes;
    return most_ - static_cast<std::size_t>((base_ + static_cast<std::uint64_t>(disp) + most_) % 16);
}

void RecordTransport::copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
    if (bytes >= to_reader_)
        base::copy_to_reader(to, from, bytes);
    else
        shm::move_bytes(to, from, bytes);
}

void RecordTransport::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    auto* data = static_cast<std::byte*>(memory);
    const Opcode opcode = write ? Opcode::Put : Opcode::Get;
    while (bytes > 0) {
        const std::size_t n = cut(disp, bytes);
        std::byte* const to = add({opcode, Basic::None, Op::None, 0, static_cast<std::uint32_t>(n), disp});
        if (to == nullptr) return;
        if (write)
            copy(to, data, n);
        else
            returns({data, n, nullptr, 1});
        data += n;
        disp += static_cast<std::int64_t>(n);
        bytes -= n;
    }
}

bool RecordTransport::gathers(const op::Cursor& target) const {
    constexpr std::size_t kFewPieces = 4;
    constexpr std::size_t kLongPiece = 1024;  // bytes: records of their own cost little
    if (target.done()) return false;
    const op::Pieces next = target.ahead();
    return next.bytes <= kLongPiece && (target.in_list() || next.blocks >= kFewPieces);
}

ShapeWriter RecordTransport::describe(op::Cursor& target, std::size_t left, std::size_t most, std::size_t unit) const {
    const std::size_t shape = std::min(ShapeWriter::kLongest, most_ / 2);
    return {target, shape, std::min(left, most - shape), unit};
}

namespace {

// Calls f(pieces, joins) for equal pieces of the next `bytes` bytes; `joins`: there are more.
template <class F>
void for_each_row(op::Cursor& cursor, std::size_t bytes, F&& f) {
    while (bytes > 0) {
        op::Pieces next = cursor.ahead();
        next.blocks = std::min(next.blocks, bytes / next.bytes);
        if (next.blocks == 0) {
            next = {next.off, bytes, 0, 1};
            cursor.advance(bytes);
        } else {
            cursor.advance_pieces(next.blocks);
        }
        bytes -= next.bytes * next.blocks;
        f(next, bytes > 0);
    }
}

}  // namespace

void RecordTransport::move_all(const op::Call& call, std::int64_t start) {
    op::Cursor target(call.target.layout->data(), call.target.count);
    if (!gathers(target)) return Transport::move_all(call, start);
    op::Cursor origin(call.origin.layout->data(), call.origin.count);
    const bool write = call.kind == op::OpKind::Put;
    std::size_t left =
        std::min(call.origin.layout->size() * call.origin.count, call.target.layout->size() * call.target.count);
    while (left > 0) {
        const ShapeWriter shape = describe(target, left, most_, 16);
        const std::size_t bytes = shape.data();
        std::size_t rows = 0;
        if (!write) {
            op::Cursor counted = origin;
            for_each_row(counted, bytes, [&](const op::Pieces&, bool) { ++rows; });
        }
        std::byte* const carried = add({write ? Opcode::Put : Opcode::Get, Basic::None, Op::None, shape.units(),
                                        static_cast<std::uint32_t>(bytes), start + shape.first()},
                                       rows);
        if (carried == nullptr) return;
        std::byte* const data = shape.copy_to(carried);
        for (std::size_t done = 0; write && done < bytes;)
            done += op::pack(origin, call.origin.base, data + done, bytes - done);
        if (!write)
            for_each_row(origin, bytes, [&](const op::Pieces& row, bool joins) {
                returns({op::at(call.origin.base, row.off), row.bytes, nullptr, 1, row.blocks, row.stride, joins});
            });
        left -= bytes;
    }
}

void RecordTransport::update_all(const Update& how, std::int64_t start, op::Cursor target, const std::byte* origin,
                                 std::byte* result, std::size_t bytes) {
    if (!gathers(target)) return Transport::update_all(how, start, target, origin, result, bytes);
    const std::size_t most = origin != nullptr && result != nullptr ? most_both_ : most_;
    for (std::size_t done = 0; done < bytes;) {
        const ShapeWriter shape = describe(target, bytes - done, most, how.width);
        const std::size_t n = shape.data();
        std::byte* const carried = add({result != nullptr ? Opcode::UpdateReturn : Opcode::Update, how.basic, how.op,
                                        shape.units(), static_cast<std::uint32_t>(n), start + shape.first()});
        if (carried == nullptr) return;
        std::byte* const data = shape.copy_to(carried);
        if (origin != nullptr) copy(data, origin + done, n);
        if (result != nullptr) returns({result + done, n, how.copy, how.width});
        done += n;
    }
}

void RecordTransport::update(const Update& how, std::int64_t disp, const void* origin, void* result,
                             std::size_t count) {
    const auto* data = static_cast<const std::byte*>(origin);
    auto* back = static_cast<std::byte*>(result);
    const bool sends = how.op != Op::NoOp;
    const std::size_t most = (sends && back != nullptr ? most_both_ : most_) / how.width;
    const Opcode opcode = how.compare != nullptr ? Opcode::CompareAndSwap
                          : back != nullptr      ? Opcode::UpdateReturn
                                                 : Opcode::Update;
    while (count > 0) {
        const std::size_t elements = std::min(count, most);
        const std::size_t n = elements * how.width;
        std::byte* const to = add({opcode, how.basic, how.op, 0, static_cast<std::uint32_t>(n), disp});
        if (to == nullptr) return;
        if (sends) {
            copy(to, data, n);
            data += n;
        }
        if (how.compare != nullptr) std::memcpy(to + n, how.compare, n);
        if (back != nullptr) {
            returns({back, n, how.copy, how.width});
            back += n;
        }
        disp += static_cast<std::int64_t>(n);
        count -= elements;
    }
}

}  // namespace osc::net
