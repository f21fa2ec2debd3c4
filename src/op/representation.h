// The C++ type behind each Basic and the group that decides its operations. Only types and compile-time functions:
// the kernel files include this under different processor flags, so nothing here may leave code behind that the
// linker could take for another file's.
#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>

#include "op/types.h"

namespace osc::op {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

/// Stands in for a type that the compiler cannot compute with: it can be copied, no more.
template <std::size_t Size>
struct Opaque {
    unsigned char bytes[Size];
};

#if defined(__ARM_FP16_FORMAT_IEEE)
using Float16 = __fp16;
inline constexpr bool has_float16 = true;
#elif defined(__FLT16_MANT_DIG__)
__extension__ using Float16 = _Float16;
inline constexpr bool has_float16 = true;
#else
using Float16 = Opaque<2>;
inline constexpr bool has_float16 = false;
#endif

/// The bits of a bfloat16. Its own type, because not every supported compiler has one with arithmetic; kernels_loops.h
/// computes in float.
struct Bfloat16 {
    std::uint16_t bits;
};

#if defined(__SIZEOF_FLOAT128__)
__extension__ using Float128 = __float128;
inline constexpr bool has_float128 = true;
#elif LDBL_MANT_DIG == 113
using Float128 = long double;
inline constexpr bool has_float128 = true;
#else
using Float128 = Opaque<16>;
inline constexpr bool has_float128 = false;
#endif

/// Types with the same operations, MPI 4.1 section 6.9.2.
enum class Group : std::uint8_t { None, Integer, Floating, Complex, Logical, Text, Pair };

/// C and Fortran lay out the two values of MINLOC and MAXLOC like this.
template <class Value, class Index>
struct PairOf {
    Value value;
    Index index;
};

template <class Part>
struct ComplexOf {
    Part re;
    Part im;
};

template <Group TheGroup, class T, bool CanCompute = true>
struct Represented {
    static constexpr Group group = TheGroup;
    static constexpr bool can_compute = CanCompute;
    using Type = T;
};

template <Basic>
struct Representation : Represented<Group::None, void, false> {};

// Logical types are handled as unsigned integers: reading a C bool that holds neither 0 nor 1 is undefined,
// and Fortran compilers differ in what they store for .true.
// clang-format off
template <> struct Representation<Basic::I8>          : Represented<Group::Integer, std::int8_t> {};
template <> struct Representation<Basic::I16>         : Represented<Group::Integer, std::int16_t> {};
template <> struct Representation<Basic::I32>         : Represented<Group::Integer, std::int32_t> {};
template <> struct Representation<Basic::I64>         : Represented<Group::Integer, std::int64_t> {};
template <> struct Representation<Basic::I128>        : Represented<Group::Integer, Int128> {};
template <> struct Representation<Basic::U8>          : Represented<Group::Integer, std::uint8_t> {};
template <> struct Representation<Basic::U16>         : Represented<Group::Integer, std::uint16_t> {};
template <> struct Representation<Basic::U32>         : Represented<Group::Integer, std::uint32_t> {};
template <> struct Representation<Basic::U64>         : Represented<Group::Integer, std::uint64_t> {};
template <> struct Representation<Basic::F16>         : Represented<Group::Floating, Float16, has_float16> {};
template <> struct Representation<Basic::Bf16>        : Represented<Group::Floating, Bfloat16> {};
template <> struct Representation<Basic::F32>         : Represented<Group::Floating, float> {};
template <> struct Representation<Basic::F64>         : Represented<Group::Floating, double> {};
template <> struct Representation<Basic::LongDouble>  : Represented<Group::Floating, long double> {};
template <> struct Representation<Basic::F128>        : Represented<Group::Floating, Float128, has_float128> {};
template <> struct Representation<Basic::C16>         : Represented<Group::Complex, ComplexOf<Float16>, has_float16> {};
template <> struct Representation<Basic::C32>         : Represented<Group::Complex, ComplexOf<float>> {};
template <> struct Representation<Basic::C64>         : Represented<Group::Complex, ComplexOf<double>> {};
template <> struct Representation<Basic::CLongDouble> : Represented<Group::Complex, ComplexOf<long double>> {};
template <> struct Representation<Basic::C128>        : Represented<Group::Complex, ComplexOf<Float128>, has_float128> {};
template <> struct Representation<Basic::Bool>        : Represented<Group::Logical, std::uint8_t> {};
template <> struct Representation<Basic::Logical1>    : Represented<Group::Logical, std::uint8_t> {};
template <> struct Representation<Basic::Logical2>    : Represented<Group::Logical, std::uint16_t> {};
template <> struct Representation<Basic::Logical4>    : Represented<Group::Logical, std::uint32_t> {};
template <> struct Representation<Basic::Logical8>    : Represented<Group::Logical, std::uint64_t> {};
template <> struct Representation<Basic::Logical16>   : Represented<Group::Logical, Uint128> {};
template <> struct Representation<Basic::Byte>        : Represented<Group::Integer, std::uint8_t> {};
template <> struct Representation<Basic::Char4>       : Represented<Group::Text, std::uint32_t> {};
template <> struct Representation<Basic::FloatInt>    : Represented<Group::Pair, PairOf<float, int>> {};
template <> struct Representation<Basic::DoubleInt>   : Represented<Group::Pair, PairOf<double, int>> {};
template <> struct Representation<Basic::LongInt>     : Represented<Group::Pair, PairOf<long, int>> {};
template <> struct Representation<Basic::ShortInt>    : Represented<Group::Pair, PairOf<short, int>> {};
template <> struct Representation<Basic::IntInt>      : Represented<Group::Pair, PairOf<int, int>> {};
template <> struct Representation<Basic::LongDoubleInt> : Represented<Group::Pair, PairOf<long double, int>> {};
template <> struct Representation<Basic::TwoF32>      : Represented<Group::Pair, PairOf<float, float>> {};
template <> struct Representation<Basic::TwoF64>      : Represented<Group::Pair, PairOf<double, double>> {};
// clang-format on

/// Whether the operation is defined on the group, MPI 4.1 sections 6.9.2, 6.9.4 and 12.3.4.
consteval bool defined_on(Op op, Group group) {
    switch (op) {
        case Op::Max:
        case Op::Min:
            return group == Group::Integer || group == Group::Floating;
        case Op::Sum:
        case Op::Prod:
            return group == Group::Integer || group == Group::Floating || group == Group::Complex;
        case Op::Land:
        case Op::Lor:
        case Op::Lxor:
            return group == Group::Integer || group == Group::Logical;
        case Op::Band:
        case Op::Bor:
        case Op::Bxor:
            return group == Group::Integer;
        case Op::Minloc:
        case Op::Maxloc:
            return group == Group::Pair;
        case Op::Replace:
        case Op::NoOp:
            return group != Group::None;
        case Op::None:
        case Op::Count:
            break;
    }
    return false;
}

}  // namespace osc::op
