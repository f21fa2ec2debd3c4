// Writing records, and distributing replies.
#include "net/origin/record_transport.h"

#include <algorithm>
#include <cstring>

#include "local/direct.h"

namespace osc::net {

bool store_reply(std::span<const ReplySegment> segments, const std::byte* data, std::size_t bytes) {
    std::size_t at = 0;
    for (const ReplySegment& segment : segments) {
        if (at + segment.bytes > bytes) return false;
        if (segment.copy != nullptr)
            segment.copy(segment.to, data + at, segment.bytes / segment.width);
        else
            shm::move_bytes(segment.to, data + at, segment.bytes);
        at += padded(segment.bytes);
    }
    return true;
}

// How much of a put or get goes into the next record: all, or up to a place where no naturally aligned word is cut.
std::size_t RecordTransport::cut(std::int64_t disp, std::size_t bytes) const {
    if (bytes <= most_) return bytes;
    return most_ - static_cast<std::size_t>((base_ + static_cast<std::uint64_t>(disp) + most_) % 16);
}

void RecordTransport::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    auto* data = static_cast<std::byte*>(memory);
    const Opcode opcode = write ? Opcode::Put : Opcode::Get;
    while (bytes > 0) {
        const std::size_t n = cut(disp, bytes);
        std::byte* const to = add({opcode, Basic::None, Op::None, 0, static_cast<std::uint32_t>(n), disp});
        if (to == nullptr) return;
        if (write)
            shm::move_bytes(to, data, n);
        else
            returns({data, n, nullptr, 1});
        data += n;
        disp += static_cast<std::int64_t>(n);
        bytes -= n;
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
            std::memcpy(to, data, n);
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
