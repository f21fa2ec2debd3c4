// What a record carries in front of its data when its part of the target's memory is not one run of bytes: the pieces,
// in the order of the data. A record describes its own pieces only, so the target keeps nothing.
//
// The description is a ShapeHead and `count` entries, padded to units of 64 bytes, whose number is in Record::flags.
// Displacements count from Record::disp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/wire.h"
#include "op/cursor.h"

namespace osc::net {

struct ShapeHead {
    std::uint32_t count = 0;
    std::uint32_t bytes = 0;  // of each piece: entries are ShapePlace; or one of these:
};
inline constexpr std::uint32_t kBlocks = 0;                 // entries are ShapeBlock
inline constexpr std::uint32_t kRuns = ~std::uint32_t{0};   // entries are ShapeRun
inline constexpr std::uint32_t kSteps = ~std::uint32_t{1};  // entries are ShapeStep

// Each form states a piece `disp` bytes from Record::disp, or `gap` bytes from the end of the last piece; false if it
// cannot.
struct ShapePlace {
    bool set(std::ptrdiff_t at, std::ptrdiff_t /*gap*/, std::size_t /*bytes*/) {
        disp = static_cast<std::int32_t>(at);
        return disp == at;
    }
    std::int32_t disp;
};
struct ShapeStep {
    bool set(std::ptrdiff_t /*at*/, std::ptrdiff_t its_gap, std::size_t its_bytes) {
        gap = static_cast<std::uint16_t>(its_gap);
        bytes = static_cast<std::uint16_t>(its_bytes);
        return gap == its_gap && bytes == its_bytes;
    }
    std::uint16_t gap;
    std::uint16_t bytes;
};
struct ShapeBlock {
    bool set(std::ptrdiff_t at, std::ptrdiff_t /*gap*/, std::size_t its_bytes) {
        disp = static_cast<std::int32_t>(at);
        bytes = static_cast<std::uint32_t>(its_bytes);
        return disp == at && bytes == its_bytes;
    }
    std::int32_t disp;
    std::uint32_t bytes;
};
struct ShapeRun {
    std::int64_t disp;
    std::int64_t stride;
    std::uint32_t bytes;
    std::uint32_t count;
};
static_assert(sizeof(ShapeHead) == 8 && sizeof(ShapePlace) == 4 && sizeof(ShapeStep) == 4 && sizeof(ShapeBlock) == 8 &&
              sizeof(ShapeRun) == 24);

/// Describes the next pieces of a target, at the origin.
class ShapeWriter {
  public:
    static constexpr std::size_t kLongest = 4096;

    /// Describes pieces of `to` while their description takes at most `most_shape` bytes and they have at most
    /// `most_data`, a multiple of `unit`, bytes; steps over them. A longer piece is cut at a multiple of `unit`.
    ShapeWriter(op::Cursor& to, std::size_t most_shape, std::size_t most_data, std::size_t unit);

    /// Displacement of the first byte, which Record::disp takes.
    std::ptrdiff_t first() const { return first_; }
    /// Bytes of data.
    std::size_t data() const { return data_; }
    std::uint8_t units() const { return static_cast<std::uint8_t>((size_ + kShapeUnit - 1) / kShapeUnit); }
    /// Copies units() to the front of what the record carries; returns where the data goes.
    std::byte* copy_to(std::byte* carried) const;

  private:
    void write_runs(op::Cursor& to, std::size_t most_data, std::size_t unit);
    // Describes whole pieces of a list; false, and nothing described, if an entry cannot state one of them.
    template <class Entry>
    bool write_list(op::Cursor& to, std::size_t most_data, std::uint32_t form);
    template <class Entry>
    std::size_t room() const {
        return (most_ - size_) / sizeof(Entry);
    }

    std::ptrdiff_t first_;
    std::size_t most_;
    std::size_t data_ = 0;
    std::size_t size_ = sizeof(ShapeHead);
    ShapeHead head_;
    alignas(8) std::byte bytes_[kLongest];
};

/// Reads the description in front of a record's data at the target; false if it is malformed, or is not of
/// Record::bytes bytes.
bool read_shape(const Record& record, const std::byte* carried, op::Shape& shape);

/// The shapes of the last long descriptions that a target has read. A program uses a datatype again and again, and
/// comparing a description takes a tenth of the time of reading it.
class ShapeCache {
  public:
    /// As read_shape(); null: false.
    std::shared_ptr<const op::Shape> read(const Record& record, const std::byte* carried);

  private:
    struct Kept {
        std::size_t data = 0;
        std::vector<std::byte> description;
        std::shared_ptr<const op::Shape> shape;
    };
    std::array<Kept, 32> kept_;  // of up to 36 KiB each
    std::size_t made_ = 0;
};

}  // namespace osc::net
