// Basic types and operations of MPI reductions, free of MPI handles so that the rooms below the window run
// in unit tests. src/host maps the host's handles to these.
#pragma once

#include <cstddef>
#include <cstdint>

namespace osc {

/// A predefined datatype by its representation in memory. Types with the same representation and the same
/// operations share one entry (MPI_LONG and MPI_INT64_T are both I64); MPI 4.1 section 6.9.2 says which operations
/// each group admits.
enum class Basic : std::uint8_t {
    None,  // not one predefined type: a derived type that mixes several
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,  // bfloat16: the upper half of an F32
    F32,
    F64,
    LongDouble,
    F128,
    C16,          // complex of two F16
    C32,          // complex of two F32
    C64,          // complex of two F64
    CLongDouble,  // complex of two long double
    C128,         // complex of two F128
    Bool,         // C _Bool, C++ bool
    Logical1,     // Fortran LOGICAL of 1, 2, 4, 8, 16 bytes
    Logical2,
    Logical4,
    Logical8,
    Logical16,
    Byte,      // MPI_BYTE, MPI_PACKED
    Char4,     // MPI_WCHAR: no arithmetic
    FloatInt,  // pairs for MINLOC and MAXLOC; their padding must not be written
    DoubleInt,
    LongInt,
    ShortInt,
    IntInt,  // MPI_2INT, MPI_2INTEGER
    LongDoubleInt,
    TwoF32,  // MPI_2REAL
    TwoF64,  // MPI_2DOUBLE_PRECISION
    Count,
};

/// A predefined operation, MPI 4.1 section 6.9.2 and 12.3.4 (REPLACE, NO_OP).
enum class Op : std::uint8_t {
    None,
    Max,
    Min,
    Sum,
    Prod,
    Land,
    Band,
    Lor,
    Bor,
    Lxor,
    Bxor,
    Minloc,
    Maxloc,
    Replace,
    NoOp,
    Count,
};

}  // namespace osc
