// Datatypes of every class over one basic type, with the displacements of their elements. The model computes these
// independently of the library.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "basics.h"
#include "random.h"

namespace diff {

/// Classes of datatypes. Mixed (both sides derived, of different classes) and Pair (of pair types, in any layout) are
/// counted beside the class of each side.
enum class Shape { Plain, Vector, Indexed, Struct, Subarray, Resized, Mixed, Pair, Count };
inline constexpr std::size_t kShapesToMake = static_cast<std::size_t>(Shape::Mixed);

const char* name_of(Shape shape);

/// `count` instances of a datatype.
struct Layout {
    Shape shape = Shape::Plain;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int count = 0;
    bool derived = false;            // to be freed
    std::vector<std::ptrdiff_t> at;  // byte displacement of every element, in the order in which data is matched
    std::ptrdiff_t low = 0;          // all elements lie in [low, high)
    std::ptrdiff_t high = 0;

    void release();
};

/// A layout of `shape` with `elements` elements that do not overlap.
Layout make_layout(const Basic& basic, Shape shape, std::size_t elements, Random& random);

}  // namespace diff
