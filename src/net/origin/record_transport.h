// From operations to records of the wire format: the part of an origin's transport that both channels share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "net/shape.h"
#include "net/wire.h"
#include "op/kernels.h"
#include "op/transport.h"

namespace osc::net {

/// Where what one record returns goes in the origin's memory.
struct ReplySegment {
    void* to = nullptr;
    std::size_t bytes = 0;
    op::Kernel copy = nullptr;  // null: as bytes; else without the padding of elements
    std::size_t width = 1;      // of an element, for `copy`
    // Equal pieces of `bytes` bytes, as far apart as this.
    std::size_t pieces = 1;
    std::ptrdiff_t stride = 0;
    bool joins = false;  // the next segment belongs to the same record
};

/// Distributes a reply's data, each segment padded; false if the data is too short.
bool store_reply(std::span<const ReplySegment> segments, const std::byte* data, std::size_t bytes);

class RecordTransport : public Transport {
  public:
    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override;
    void move_all(const op::Call& call, std::int64_t start) override;
    void update_all(const Update& how, std::int64_t start, op::Cursor target, const std::byte* origin,
                    std::byte* result, std::size_t bytes) override;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;

  protected:
    /// A record has at most `most` bytes of data, or at most `most_both` in each direction if it also returns data.
    /// `base`: the address of displacement 0 as far as it is no multiple of 16. Data of
    /// `to_reader` bytes and more are written for a reader on another core (base::copy_to_reader).
    RecordTransport(std::size_t most, std::size_t most_both, std::uint64_t base,
                    std::size_t to_reader = std::numeric_limits<std::size_t>::max())
        : most_(most), most_both_(most_both), base_(base), to_reader_(to_reader) {}

    /// Copies the record into a message that has room for it; returns where its data goes, null if the operation has
    /// failed. Behind a record that returns data come so many calls of returns(), which need no memory.
    virtual std::byte* add(const Record& record, std::size_t segments) = 0;
    std::byte* add(const Record& record) { return add(record, 1); }
    /// What the record added last returns goes there.
    virtual void returns(const ReplySegment& segment) = 0;
    /// Whether a record describes the pieces of the target, instead of a record each.
    virtual bool gathers(const op::Cursor& target) const;

    const std::size_t most_;

  private:
    // A description of the target's next pieces, of which `left` bytes are wanted.
    ShapeWriter describe(op::Cursor& target, std::size_t left, std::size_t most, std::size_t unit) const;
    std::size_t cut(std::int64_t disp, std::size_t bytes) const;
    // Of data, into a message.
    void copy(std::byte* to, const std::byte* from, std::size_t bytes) const;

    const std::size_t most_both_;
    const std::uint64_t base_;
    const std::size_t to_reader_;
};

}  // namespace osc::net
