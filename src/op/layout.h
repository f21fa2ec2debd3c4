// The flattened memory description of one element of a datatype, and the builder that composes it. No MPI types:
// src/host turns the host's datatypes into these, unit tests make them by hand. Owns the lists of blocks; a Layout is
// immutable once built, so any number of threads may read it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "op/types.h"

namespace osc::op {

/// `count` blocks of `bytes` bytes each; block i lies at byte displacement `disp + i * stride`. Blocks of one run never
/// touch (stride != bytes when count > 1): touching ones are one larger block.
struct Run {
    std::ptrdiff_t disp = 0;
    std::size_t bytes = 0;
    std::ptrdiff_t stride = 0;
    std::size_t count = 1;

    friend bool operator==(const Run&, const Run&) = default;
};

/// Repeats `run` `times` times at distance `extent` bytes if the result is again one run. Returns whether it was;
/// `run` is unchanged if not.
[[nodiscard]] bool fold(Run& run, std::ptrdiff_t extent, std::size_t times) noexcept;

/// Repeats what lies inside it `count` times, `stride` bytes apart.
struct Loop {
    std::ptrdiff_t stride = 0;
    std::size_t count = 1;
};

/// Loops around loops, the outermost first: the planes of a volume, the volumes of a field.
inline constexpr std::size_t max_loops = 6;

/// Runs in typemap order, and the loops that repeat all of them. Repetitions never touch: where the last block of one
/// ends, the next one does not begin.
struct Nest {
    std::vector<Run> runs;
    std::vector<Loop> loops;

    [[nodiscard]] std::size_t turns() const noexcept {
        std::size_t all = 1;
        for (const Loop& loop : loops)
            all *= loop.count;
        return all;
    }
};

/// The blocks of one element in typemap order (the order in which data is packed), as few runs as possible. A regular
/// vector of any length is one run, a subarray of any dimension one run in a nest of loops.
class Shape {
  public:
    Shape() = default;
    /// Takes runs in typemap order and drops empty ones. `extent`: bytes from one element to the next, any sign.
    Shape(Nest nest, std::ptrdiff_t extent);

    [[nodiscard]] std::span<const Run> runs() const noexcept { return nest_.runs; }
    [[nodiscard]] std::span<const Loop> loops() const noexcept { return nest_.loops; }
    /// Bytes of data per element, without gaps.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
    /// How often the loops together repeat the runs, and the displacement of repetition `turn`, in typemap order.
    [[nodiscard]] std::ptrdiff_t turn_disp(std::size_t turn) const noexcept {
        std::ptrdiff_t disp = 0;
        for (std::size_t i = nest_.loops.size(); i-- > 0; turn /= nest_.loops[i].count)
            disp += static_cast<std::ptrdiff_t>(turn % nest_.loops[i].count) * nest_.loops[i].stride;
        return disp;
    }
    [[nodiscard]] std::size_t turns() const noexcept { return nest_.turns(); }
    /// Bytes of one turn.
    [[nodiscard]] std::size_t turn_bytes() const noexcept { return turn_bytes_; }
    /// Whether every run is one block; all of the same length if `same_length`.
    [[nodiscard]] bool list() const noexcept { return list_; }
    [[nodiscard]] bool same_length() const noexcept { return same_length_; }
    [[nodiscard]] std::ptrdiff_t extent() const noexcept { return extent_; }
    /// Lowest byte of data and the distance from it to the end of the highest; both 0 without data.
    [[nodiscard]] std::ptrdiff_t true_lb() const noexcept { return true_lb_; }
    [[nodiscard]] std::size_t true_extent() const noexcept { return true_extent_; }
    /// Whether the last block of an element touches the first block of the next one.
    [[nodiscard]] bool wraps() const noexcept { return wraps_; }
    /// Whether `count` elements are one run of bytes, at first_disp().
    [[nodiscard]] bool one_piece(std::size_t count) const noexcept { return blocks_ == 1 && (wraps_ || count == 1); }
    [[nodiscard]] std::ptrdiff_t first_disp() const noexcept {
        return nest_.runs.empty() ? 0 : nest_.runs.front().disp;
    }

  private:
    Nest nest_;
    std::size_t size_ = 0;
    std::size_t blocks_ = 0;
    std::size_t turn_bytes_ = 0;
    bool list_ = true;
    bool same_length_ = true;
    std::ptrdiff_t extent_ = 0;
    std::ptrdiff_t true_lb_ = 0;
    std::size_t true_extent_ = 0;
    bool wraps_ = false;
};

/// The bytes [lo, hi) relative to a base address.
struct Bounds {
    std::ptrdiff_t lo = 0;
    std::ptrdiff_t hi = 0;
};

/// One element of a datatype: its data, its extent, and the predefined type it is made of.
class Layout {
  public:
    Layout() = default;

    /// A predefined type at displacement 0, padded as in an array of it; None has no data (MPI_LB and MPI_UB).
    static Layout leaf(Basic basic);

    [[nodiscard]] std::size_t size() const noexcept { return data_.size(); }
    [[nodiscard]] std::ptrdiff_t extent() const noexcept { return data_.extent(); }
    [[nodiscard]] std::ptrdiff_t true_lb() const noexcept { return data_.true_lb(); }
    [[nodiscard]] std::size_t true_extent() const noexcept { return data_.true_extent(); }
    /// The predefined type of all leaves; None if they differ or there are none.
    [[nodiscard]] Basic basic() const noexcept { return basic_; }
    /// Whether any count of elements is one run of bytes that starts at displacement 0.
    [[nodiscard]] bool contiguous() const noexcept { return contiguous_; }

    /// The bytes of data, without the padding inside pair types: what put and get move.
    [[nodiscard]] const Shape& data() const noexcept { return data_; }
    /// The elements of basic(), each element_size(basic()) bytes with the padding of pair types: what accumulate
    /// computes on. Blocks are whole numbers of elements. Same as data() for all but padded pairs.
    [[nodiscard]] const Shape& elements() const noexcept { return padded_ ? *padded_ : data_; }

    /// The bytes that an access to `count` elements touches, in O(1); lo == hi if none. False if they, or their number,
    /// do not fit 64 bits with a sign: no walk over the elements may begin.
    [[nodiscard]] bool bounds(std::size_t count, Bounds& out) const noexcept;

  private:
    friend class LayoutBuilder;

    Shape data_;
    std::shared_ptr<const Shape> padded_;  // only where elements have padding
    Basic basic_ = Basic::None;
    bool contiguous_ = false;
};

/// Irregular blocks that a layout may have: 2.5 GiB of them. Flattening more would exhaust memory unseen.
inline constexpr std::size_t max_runs = std::size_t{1} << 26;

/// All data of a layout lie less than this from its origin, in bytes, in both directions: sums and differences of two
/// displacements fit 64 bits. Address spaces are smaller.
inline constexpr std::ptrdiff_t max_displacement = std::ptrdiff_t{1} << 61;

/// Composes a Layout from others, in typemap order. One thread at a time. Memory: one Run per irregularity; a regular
/// repetition of one child alone costs a Loop. Throws std::bad_alloc, std::length_error beyond `most` irregular blocks,
/// and std::overflow_error for data, or as many bytes of it, beyond max_displacement.
class LayoutBuilder {
  public:
    explicit LayoutBuilder(std::size_t most = max_runs) : most_(most) {}
    /// Appends `count` elements of `child`, the first with its origin at `disp` bytes, each `child.extent()` further.
    void add(std::ptrdiff_t disp, std::size_t count, const Layout& child) { add_strided(disp, 1, count, 0, child); }
    /// Appends `count` groups, `stride` bytes apart, of `blocklength` elements of `child`.
    void add_strided(std::ptrdiff_t disp, std::size_t count, std::size_t blocklength, std::ptrdiff_t stride,
                     const Layout& child);
    /// Ends the layout and leaves the builder empty. `extent`: in bytes, what the datatype's rules or
    /// MPI_Type_create_resized make it.
    Layout finish(std::ptrdiff_t extent);

  private:
    void note_basic(const Layout& child);

    const std::size_t most_;
    std::size_t bytes_ = 0;
    Nest data_;
    Nest padded_;  // the elements, kept only while basic_ is a padded pair
    Basic basic_ = Basic::None;
    bool mixed_ = false;
};

}  // namespace osc::op
