// The predefined datatypes and operations as the model knows them: their bytes, which operations each type takes, and
// what an operation does to one element. Written from the standard (MPI 4.1 sections 6.9.2 to 6.9.4 and 12.3.4), apart
// from the library's kernels, so that an error in one is not repeated in the other.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "random.h"

namespace diff {

enum class Group { Integer, Floating, Complex, Logical, Text, Pair };

enum class Red { Max, Min, Sum, Prod, Land, Band, Lor, Bor, Lxor, Bxor, Minloc, Maxloc, Replace, NoOp, Count };

struct Basic {
    const char* name;
    MPI_Datatype type;
    Group group;
    std::size_t width;  // bytes from one element to the next
    std::size_t align;
    /// Bytes of one element that an operation writes: two pieces where a pair has a gap.
    struct Piece {
        std::size_t offset, bytes;
    } pieces[2];
    int piece_count;
    bool countable;   // an integer that a few thousand increments do not overflow
    bool comparable;  // MPI_Compare_and_swap takes it
    bool truth;       // logical operations take it: logicals and C's integers
    /// target = target op origin, for Sum to Maxloc.
    void (*combine)(Red red, unsigned char* target, const unsigned char* origin);
    /// A value for which every allowed operation has one exact result, whatever the order.
    void (*make)(Random& random, unsigned char* out);
    void (*make_number)(long number, unsigned char* out);
    std::size_t vague_from, vague_to;  // bytes of an element that arithmetic leaves unspecified (80-bit floats)
};

/// All types that this MPI has.
const std::vector<Basic>& basics();

MPI_Op handle_of(Red red);
const char* name_of(Red red);
bool admits(Red red, const Basic& basic);
/// Whether concurrent operations have one result in any order.
bool commutes(Red red, const Basic& basic);

}  // namespace diff
