// The reference for tests of reduction kernels: layouts and admitted operations from the standard, a scalar version of
// each operation, and random arrays.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "op/kernels.h"
#include "op/representation.h"

namespace osc::op::reference {

using Bytes = std::vector<unsigned char>;

/// What is expected of a type. `kind` is a letter per group: Integer, Floating, Complex, Logical, Text, Pair.
struct Expected {
    Basic basic;
    char kind;
    std::size_t size;
    std::size_t significant;
};

inline constexpr std::size_t long_double = sizeof(long double);

inline constexpr Expected expectations[] = {
    {Basic::I8, 'I', 1, 1},
    {Basic::I16, 'I', 2, 2},
    {Basic::I32, 'I', 4, 4},
    {Basic::I64, 'I', 8, 8},
    {Basic::I128, 'I', 16, 16},
    {Basic::U8, 'I', 1, 1},
    {Basic::U16, 'I', 2, 2},
    {Basic::U32, 'I', 4, 4},
    {Basic::U64, 'I', 8, 8},
    {Basic::F16, has_float16 ? 'F' : 'T', 2, 2},
    {Basic::Bf16, 'F', 2, 2},
    {Basic::F32, 'F', 4, 4},
    {Basic::F64, 'F', 8, 8},
    {Basic::LongDouble, 'F', long_double, long_double},
    {Basic::F128, has_float128 ? 'F' : 'T', 16, 16},
    {Basic::C16, has_float16 ? 'C' : 'T', 4, 4},
    {Basic::C32, 'C', 8, 8},
    {Basic::C64, 'C', 16, 16},
    {Basic::CLongDouble, 'C', 2 * long_double, 2 * long_double},
    {Basic::C128, has_float128 ? 'C' : 'T', 32, 32},
    {Basic::Bool, 'L', 1, 1},
    {Basic::Logical1, 'L', 1, 1},
    {Basic::Logical2, 'L', 2, 2},
    {Basic::Logical4, 'L', 4, 4},
    {Basic::Logical8, 'L', 8, 8},
    {Basic::Logical16, 'L', 16, 16},
    {Basic::Byte, 'I', 1, 1},
    {Basic::Char4, 'T', 4, 4},
    {Basic::FloatInt, 'P', 8, 8},
    {Basic::DoubleInt, 'P', 16, 12},
    {Basic::LongInt, 'P', 16, 12},
    {Basic::ShortInt, 'P', 8, 6},
    {Basic::IntInt, 'P', 8, 8},
    {Basic::LongDoubleInt, 'P', 2 * long_double, long_double + 4},
    {Basic::TwoF32, 'P', 8, 8},
    {Basic::TwoF64, 'P', 16, 16},
};

inline const Expected* expected(Basic basic) {
    for (const Expected& row : expectations) {
        if (row.basic == basic) {
            return &row;
        }
    }
    return nullptr;
}

/// The groups that admit the operation, MPI 4.1 sections 6.9.2, 6.9.4, 12.3.4.
inline std::string_view kinds(Op op) {
    switch (op) {
        case Op::Max:
        case Op::Min:
            return "IF";
        case Op::Sum:
        case Op::Prod:
            return "IFC";
        case Op::Land:
        case Op::Lor:
        case Op::Lxor:
            return "IL";
        case Op::Band:
        case Op::Bor:
        case Op::Bxor:
            return "I";
        case Op::Minloc:
        case Op::Maxloc:
            return "P";
        case Op::Replace:
        case Op::NoOp:
            return "IFCLTP";
        default:
            return "";
    }
}

inline bool expect_admitted(Op op, Basic basic) {
    const Expected* row = expected(basic);
    return row != nullptr && kinds(op).find(row->kind) != std::string_view::npos;
}

template <class T>
T load(const unsigned char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
void store(unsigned char* to, const T& value) {
    std::memcpy(to, &value, sizeof value);
}

// ---- the reference, one element at a time

template <class T>
void integer_element(Op op, unsigned char* target, const unsigned char* origin) {
    const T t = load<T>(target);
    const T o = load<T>(origin);
    const auto wide_t = static_cast<Uint128>(static_cast<Int128>(t));
    const auto wide_o = static_cast<Uint128>(static_cast<Int128>(o));
    switch (op) {
        case Op::Max:
            return store<T>(target, std::max(t, o));
        case Op::Min:
            return store<T>(target, std::min(t, o));
        case Op::Sum:
            return store(target, static_cast<T>(wide_t + wide_o));
        case Op::Prod:
            return store(target, static_cast<T>(wide_t * wide_o));
        case Op::Land:
            return store(target, static_cast<T>(t && o));
        case Op::Lor:
            return store(target, static_cast<T>(t || o));
        case Op::Lxor:
            return store(target, static_cast<T>(!t != !o));
        case Op::Band:
            return store(target, static_cast<T>(wide_t & wide_o));
        case Op::Bor:
            return store(target, static_cast<T>(wide_t | wide_o));
        default:
            return store(target, static_cast<T>(wide_t ^ wide_o));
    }
}

template <class T>
void floating_element(Op op, unsigned char* target, const unsigned char* origin) {
    const T t = load<T>(target);
    const T o = load<T>(origin);
    switch (op) {
        case Op::Max:
            return store<T>(target, t < o ? o : t);
        case Op::Min:
            return store<T>(target, t > o ? o : t);
        case Op::Sum:
            return store(target, static_cast<T>(o + t));
        default:
            return store(target, static_cast<T>(o * t));
    }
}

/// A bfloat16 as a double, which holds sums and products of two exactly.
inline double bfloat16_value(std::uint16_t bits) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return static_cast<double>(value);
}

/// The bfloat16 nearest to a finite value, of two at the same distance the even one: by trying the neighbours.
inline std::uint16_t nearest_bfloat16(double value) {
    const auto cut = static_cast<float>(value);
    std::uint32_t wide = 0;
    std::memcpy(&wide, &cut, sizeof wide);
    const auto below = static_cast<std::uint16_t>(wide >> 16);  // towards zero
    const auto above = static_cast<std::uint16_t>(below + 1);
    const double down = std::abs(value - bfloat16_value(below));
    const double up = std::abs(value - bfloat16_value(above));
    return down < up || (down == up && below % 2 == 0) ? below : above;
}

inline void bfloat16_element(Op op, unsigned char* target, const unsigned char* origin) {
    const auto t_bits = load<std::uint16_t>(target);
    const auto o_bits = load<std::uint16_t>(origin);
    const double t = bfloat16_value(t_bits);
    const double o = bfloat16_value(o_bits);
    switch (op) {
        case Op::Max:
            return store(target, t < o ? o_bits : t_bits);
        case Op::Min:
            return store(target, t > o ? o_bits : t_bits);
        case Op::Sum:
            return store(target, nearest_bfloat16(t + o));
        default:
            return store(target, nearest_bfloat16(t * o));
    }
}

template <class T>
void complex_element(Op op, unsigned char* target, const unsigned char* origin) {
    const T a = load<T>(target);
    const T b = load<T>(target + sizeof(T));
    const T c = load<T>(origin);
    const T d = load<T>(origin + sizeof(T));
    store<T>(target, op == Op::Sum ? a + c : a * c - b * d);
    store<T>(target + sizeof(T), op == Op::Sum ? b + d : b * c + a * d);
}

template <class Value, class Index>
void pair_element(Op op, unsigned char* target, const unsigned char* origin) {
    constexpr std::size_t at = std::max(sizeof(Value), sizeof(Index));
    const Value t = load<Value>(target);
    const Value o = load<Value>(origin);
    const Index index = load<Index>(origin + at);
    if (op == Op::Replace || (op == Op::Minloc && o < t) || (op == Op::Maxloc && o > t)) {
        store(target, o);
        store(target + at, index);
    } else if (o == t && index < load<Index>(target + at)) {
        store(target + at, index);
    }
}

inline void reference_element(Op op, Basic basic, unsigned char* target, const unsigned char* origin) {
    const Expected& row = *expected(basic);
    if (op == Op::NoOp) {
        return;
    }
    if (op == Op::Replace && row.kind != 'P') {
        std::memcpy(target, origin, row.size);
        return;
    }
    // clang-format off
    switch (basic) {
        case Basic::I8: return integer_element<std::int8_t>(op, target, origin);
        case Basic::I16: return integer_element<std::int16_t>(op, target, origin);
        case Basic::I32: return integer_element<std::int32_t>(op, target, origin);
        case Basic::I64: return integer_element<std::int64_t>(op, target, origin);
        case Basic::I128: return integer_element<Int128>(op, target, origin);
        case Basic::U8: case Basic::Bool: case Basic::Logical1: case Basic::Byte:
            return integer_element<std::uint8_t>(op, target, origin);
        case Basic::U16: case Basic::Logical2: return integer_element<std::uint16_t>(op, target, origin);
        case Basic::U32: case Basic::Logical4: return integer_element<std::uint32_t>(op, target, origin);
        case Basic::U64: case Basic::Logical8: return integer_element<std::uint64_t>(op, target, origin);
        case Basic::Logical16: return integer_element<Uint128>(op, target, origin);
        case Basic::Bf16: return bfloat16_element(op, target, origin);
        case Basic::F32: return floating_element<float>(op, target, origin);
        case Basic::F64: return floating_element<double>(op, target, origin);
        case Basic::LongDouble: return floating_element<long double>(op, target, origin);
        case Basic::C32: return complex_element<float>(op, target, origin);
        case Basic::C64: return complex_element<double>(op, target, origin);
        case Basic::CLongDouble: return complex_element<long double>(op, target, origin);
        case Basic::FloatInt: return pair_element<float, int>(op, target, origin);
        case Basic::DoubleInt: return pair_element<double, int>(op, target, origin);
        case Basic::LongInt: return pair_element<long, int>(op, target, origin);
        case Basic::ShortInt: return pair_element<short, int>(op, target, origin);
        case Basic::IntInt: return pair_element<int, int>(op, target, origin);
        case Basic::LongDoubleInt: return pair_element<long double, int>(op, target, origin);
        case Basic::TwoF32: return pair_element<float, float>(op, target, origin);
        case Basic::TwoF64: return pair_element<double, double>(op, target, origin);
        default: break;
    }
    // clang-format on
    if constexpr (has_float16) {
        if (basic == Basic::F16) {
            return floating_element<Float16>(op, target, origin);
        }
        if (basic == Basic::C16) {
            return complex_element<Float16>(op, target, origin);
        }
    }
    if constexpr (has_float128) {
        return basic == Basic::F128 ? floating_element<Float128>(op, target, origin)
                                    : complex_element<Float128>(op, target, origin);
    }
    FAIL() << "no reference for " << name(basic);
}

// ---- random arrays

inline std::mt19937_64 random_bits{20240607};

inline int random_in(int low, int high) {
    return low + static_cast<int>(random_bits() % static_cast<unsigned>(high - low + 1));
}

/// Finite values, for which one rounding gives the same result everywhere; small eighths where there are two roundings.
template <class T>
void fill_floats(Bytes& bytes, char kind) {
    for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
        const T value = kind == 'C' ? static_cast<T>(random_in(-30, 30)) / static_cast<T>(8)
                                    : static_cast<T>(random_in(-1000, 1000)) * static_cast<T>(0.37);
        store(bytes.data() + at, static_cast<T>(value));
    }
}

/// Few values, so that there are ties, with random bits in the padding.
template <class Value, class Index>
void fill_pairs(Bytes& bytes) {
    constexpr std::size_t at = std::max(sizeof(Value), sizeof(Index));
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(PairOf<Value, Index>)) {
        store(bytes.data() + i, static_cast<Value>(random_in(-2, 2)));
        store(bytes.data() + i + at, static_cast<Index>(random_in(-3, 9)));
    }
}

inline Bytes random_array(Basic basic, std::size_t count) {
    const Expected& row = *expected(basic);
    Bytes bytes(row.size * count);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<unsigned char>(random_bits());
    }
    if (row.kind == 'I' || row.kind == 'L') {
        for (std::size_t i = 0; i < count; ++i) {
            if (random_bits() % 3 == 0) {
                std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * row.size), row.size, '\0');
            }
        }
    }
    // clang-format off
    switch (basic) {
        case Basic::Bf16:
            for (std::size_t at = 0; at < bytes.size(); at += 2) {
                store(bytes.data() + at, nearest_bfloat16(random_in(-1000, 1000) * 0.37));
            }
            break;
        case Basic::F32: case Basic::C32: fill_floats<float>(bytes, row.kind); break;
        case Basic::F64: case Basic::C64: fill_floats<double>(bytes, row.kind); break;
        case Basic::LongDouble: case Basic::CLongDouble: fill_floats<long double>(bytes, row.kind); break;
        case Basic::FloatInt: fill_pairs<float, int>(bytes); break;
        case Basic::DoubleInt: fill_pairs<double, int>(bytes); break;
        case Basic::LongInt: fill_pairs<long, int>(bytes); break;
        case Basic::ShortInt: fill_pairs<short, int>(bytes); break;
        case Basic::IntInt: fill_pairs<int, int>(bytes); break;
        case Basic::LongDoubleInt: fill_pairs<long double, int>(bytes); break;
        case Basic::TwoF32: fill_pairs<float, float>(bytes); break;
        case Basic::TwoF64: fill_pairs<double, double>(bytes); break;
        default: break;
    }
    // clang-format on
    if constexpr (has_float16) {
        if (basic == Basic::F16 || basic == Basic::C16) {
            fill_floats<Float16>(bytes, row.kind);
        }
    }
    if constexpr (has_float128) {
        if (basic == Basic::F128 || basic == Basic::C128) {
            fill_floats<Float128>(bytes, row.kind);
        }
    }
    return bytes;
}

/// An x87 long double has bytes that belong to no bit of its value; a store may leave anything there.
inline bool is_unused_byte(Basic basic, std::size_t offset) {
    const bool has_unused = basic == Basic::LongDouble || basic == Basic::CLongDouble || basic == Basic::LongDoubleInt;
    return has_unused && LDBL_MANT_DIG == 64 && offset % 16 >= 10 && !(basic == Basic::LongDoubleInt && offset >= 16);
}

}  // namespace osc::op::reference
