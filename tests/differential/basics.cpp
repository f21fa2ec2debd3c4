// The table of types, and the operations on their elements.
#include "basics.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace diff {
namespace {

template <class Value, class Index>
struct Pair {
    Value value;
    Index index;
};

template <class Value, class Index>
constexpr std::size_t offset_of_index = [] {
    using Both = Pair<Value, Index>;
    return offsetof(Both, index);
}();

template <class T>
T load(const unsigned char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Bytes of a value that mean something: the rest of an 80-bit float differs from copy to copy.
template <class T>
constexpr std::size_t carried = std::is_same_v<T, long double> ? 10 : sizeof(T);

template <class T>
T arithmetic(Red red, T a, T b) {
    switch (red) {
        case Red::Max:
            return b > a ? b : a;
        case Red::Min:
            return b < a ? b : a;
        case Red::Sum:
            return static_cast<T>(a + b);
        default:
            return static_cast<T>(a * b);
    }
}

template <class T>
T logical(Red red, T a, T b) {
    const bool x = a != 0;
    const bool y = b != 0;
    return static_cast<T>(red == Red::Land ? x && y : red == Red::Lor ? x || y : x != y);
}

template <class T>
T bitwise(Red red, T a, T b) {
    return static_cast<T>(red == Red::Band ? a & b : red == Red::Bor ? a | b : a ^ b);
}

template <class T>
void combine_integer(Red red, unsigned char* target, const unsigned char* origin) {
    using Wrapping = std::make_unsigned_t<T>;
    T a = load<T>(target);
    const T b = load<T>(origin);
    if (red == Red::Max || red == Red::Min) {
        a = arithmetic(red, a, b);
    } else if (red == Red::Sum) {
        a = static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    } else if (red == Red::Prod) {
        // 64-bit factors: short ones would be promoted to int, which must not overflow.
        a = static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else if (red == Red::Land || red == Red::Lor || red == Red::Lxor) {
        a = logical(red, a, b);
    } else {
        a = bitwise(red, a, b);
    }
    std::memcpy(target, &a, sizeof a);
}

template <class T>
void combine_floating(Red red, unsigned char* target, const unsigned char* origin) {
    const T a = arithmetic(red, load<T>(target), load<T>(origin));
    std::memcpy(target, &a, sizeof a);
}

template <class T>
void combine_complex(Red red, unsigned char* target, const unsigned char* origin) {
    T a[2] = {load<T>(target), load<T>(target + sizeof(T))};
    const T b[2] = {load<T>(origin), load<T>(origin + sizeof(T))};
    if (red == Red::Sum) {
        a[0] += b[0];
        a[1] += b[1];
    } else {
        const T real = a[0] * b[0] - a[1] * b[1];
        a[1] = a[0] * b[1] + a[1] * b[0];
        a[0] = real;
    }
    std::memcpy(target, a, sizeof a);
}

template <class T>
void combine_logical(Red red, unsigned char* target, const unsigned char* origin) {
    const T a = logical(red, load<T>(target), load<T>(origin));
    std::memcpy(target, &a, sizeof a);
}

void combine_nothing(Red, unsigned char*, const unsigned char*) {}

template <class Value, class Index>
void combine_pair(Red red, unsigned char* target, const unsigned char* origin) {
    constexpr std::size_t at = offset_of_index<Value, Index>;
    Value value = load<Value>(target);
    Index index = load<Index>(target + at);
    const auto other = load<Value>(origin);
    const auto other_index = load<Index>(origin + at);
    if (other == value) {
        if (other_index < index) index = other_index;
    } else if (red == Red::Minloc ? other < value : other > value) {
        value = other;
        index = other_index;
    }
    std::memcpy(target, &value, sizeof value);
    std::memcpy(target + at, &index, sizeof index);
}

template <class T>
void make_integer(Random& random, unsigned char* out) {
    const auto value = static_cast<T>(random.once_in(4) ? random.next() : random.below(100));
    std::memcpy(out, &value, sizeof value);
}

// Small and never zero times a negative number: sums and short products are exact, and no zero has a sign.
template <class T>
void make_floating(Random& random, unsigned char* out) {
    const T value = static_cast<T>(random.between(1, 7) * (random.once_in(2) ? 1 : -1));
    std::memcpy(out, &value, carried<T>);
}

template <class T>
void make_complex(Random& random, unsigned char* out) {
    make_floating<T>(random, out);
    make_floating<T>(random, out + sizeof(T));
}

template <class T>
void make_logical(Random& random, unsigned char* out) {
    const auto value = static_cast<T>(random.below(2));
    std::memcpy(out, &value, sizeof value);
}

template <class Value, class Index>
void make_pair(Random& random, unsigned char* out) {
    const auto value = static_cast<Value>(random.below(4));  // so few that there are ties
    const auto index = static_cast<Index>(random.below(50));
    std::memcpy(out, &value, carried<Value>);
    std::memcpy(out + offset_of_index<Value, Index>, &index, sizeof index);
}

template <class T>
void make_number(long number, unsigned char* out) {
    const auto value = static_cast<T>(number);
    std::memcpy(out, &value, sizeof value);
}

void no_number(long, unsigned char*) {}

template <class T>
constexpr std::size_t vague_from = std::is_same_v<T, long double> ? carried<T> : 0;
template <class T>
constexpr std::size_t vague_to = std::is_same_v<T, long double> ? sizeof(long double) : 0;

template <class T>
Basic integer(const char* name, MPI_Datatype type, bool of_c = true) {
    return {name,
            type,
            Group::Integer,
            sizeof(T),
            alignof(T),
            {{0, sizeof(T)}, {}},
            1,
            sizeof(T) >= 4,
            true,
            of_c,
            combine_integer<T>,
            make_integer<T>,
            make_number<T>,
            0,
            0};
}

template <class T>
Basic floating(const char* name, MPI_Datatype type) {
    return {
        name,  type,  Group::Floating,     sizeof(T),        alignof(T),     {{0, sizeof(T)}, {}}, 1,          false,
        false, false, combine_floating<T>, make_floating<T>, make_number<T>, vague_from<T>,        vague_to<T>};
}

template <class T>
Basic complex(const char* name, MPI_Datatype type) {
    return {name,      type,          Group::Complex, 2 * sizeof(T), alignof(T),         {{0, 2 * sizeof(T)}, {}},
            1,         false,         false,          false,         combine_complex<T>, make_complex<T>,
            no_number, vague_from<T>, vague_to<T>};
}

template <class T>
Basic truth(const char* name, MPI_Datatype type) {
    return {name,
            type,
            Group::Logical,
            sizeof(T),
            alignof(T),
            {{0, sizeof(T)}, {}},
            1,
            false,
            true,
            true,
            combine_logical<T>,
            make_logical<T>,
            no_number,
            0,
            0};
}

template <class T>
Basic text(const char* name, MPI_Datatype type) {
    return {name,
            type,
            Group::Text,
            sizeof(T),
            alignof(T),
            {{0, sizeof(T)}, {}},
            1,
            false,
            false,
            false,
            combine_nothing,
            make_integer<T>,
            no_number,
            0,
            0};
}

template <class Value, class Index>
Basic pair(const char* name, MPI_Datatype type) {
    using Both = Pair<Value, Index>;
    return {name,
            type,
            Group::Pair,
            sizeof(Both),
            alignof(Both),
            {{0, sizeof(Value)}, {offset_of_index<Value, Index>, sizeof(Index)}},
            2,
            false,
            false,
            false,
            combine_pair<Value, Index>,
            make_pair<Value, Index>,
            no_number,
            vague_from<Value>,
            vague_to<Value>};
}

}  // namespace

const std::vector<Basic>& basics() {
    static const std::vector<Basic> all = [] {
        std::vector<Basic> table = {
            integer<std::int8_t>("MPI_SIGNED_CHAR", MPI_SIGNED_CHAR),
            integer<std::int8_t>("MPI_INT8_T", MPI_INT8_T),
            integer<std::uint8_t>("MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR),
            integer<std::uint8_t>("MPI_UINT8_T", MPI_UINT8_T),
            integer<std::int16_t>("MPI_SHORT", MPI_SHORT),
            integer<std::int16_t>("MPI_INT16_T", MPI_INT16_T),
            integer<std::uint16_t>("MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT),
            integer<std::uint16_t>("MPI_UINT16_T", MPI_UINT16_T),
            integer<std::int32_t>("MPI_INT", MPI_INT),
            integer<std::int32_t>("MPI_INT32_T", MPI_INT32_T),
            integer<std::int32_t>("MPI_INTEGER", MPI_INTEGER, false),
            integer<std::uint32_t>("MPI_UNSIGNED", MPI_UNSIGNED),
            integer<std::uint32_t>("MPI_UINT32_T", MPI_UINT32_T),
            integer<std::int64_t>("MPI_LONG", MPI_LONG),
            integer<std::int64_t>("MPI_LONG_LONG", MPI_LONG_LONG),
            integer<std::int64_t>("MPI_INT64_T", MPI_INT64_T),
            integer<std::int64_t>("MPI_AINT", MPI_AINT, false),
            integer<std::int64_t>("MPI_OFFSET", MPI_OFFSET, false),
            integer<std::int64_t>("MPI_COUNT", MPI_COUNT, false),
            integer<std::uint64_t>("MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG),
            integer<std::uint64_t>("MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG),
            integer<std::uint64_t>("MPI_UINT64_T", MPI_UINT64_T),
            integer<std::int8_t>("MPI_INTEGER1", MPI_INTEGER1, false),
            integer<std::int16_t>("MPI_INTEGER2", MPI_INTEGER2, false),
            integer<std::int32_t>("MPI_INTEGER4", MPI_INTEGER4, false),
            integer<std::int64_t>("MPI_INTEGER8", MPI_INTEGER8, false),
            floating<float>("MPI_FLOAT", MPI_FLOAT),
            floating<float>("MPI_REAL", MPI_REAL),
            floating<float>("MPI_REAL4", MPI_REAL4),
            floating<double>("MPI_DOUBLE", MPI_DOUBLE),
            floating<double>("MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION),
            floating<double>("MPI_REAL8", MPI_REAL8),
            floating<long double>("MPI_LONG_DOUBLE", MPI_LONG_DOUBLE),
            complex<float>("MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX),
            complex<float>("MPI_COMPLEX", MPI_COMPLEX),
            complex<float>("MPI_COMPLEX8", MPI_COMPLEX8),
            complex<double>("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX),
            complex<double>("MPI_DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX),
            complex<double>("MPI_COMPLEX16", MPI_COMPLEX16),
            complex<long double>("MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX),
            complex<double>("MPI_CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX),
            truth<std::uint8_t>("MPI_C_BOOL", MPI_C_BOOL),
            truth<std::uint8_t>("MPI_CXX_BOOL", MPI_CXX_BOOL),
            truth<std::uint32_t>("MPI_LOGICAL", MPI_LOGICAL),
            integer<char>("MPI_CHAR", MPI_CHAR),
            integer<char>("MPI_CHARACTER", MPI_CHARACTER),
            integer<std::uint8_t>("MPI_BYTE", MPI_BYTE),
            text<std::uint32_t>("MPI_WCHAR", MPI_WCHAR),
            pair<float, int>("MPI_FLOAT_INT", MPI_FLOAT_INT),
            pair<double, int>("MPI_DOUBLE_INT", MPI_DOUBLE_INT),
            pair<long, int>("MPI_LONG_INT", MPI_LONG_INT),
            pair<short, int>("MPI_SHORT_INT", MPI_SHORT_INT),
            pair<int, int>("MPI_2INT", MPI_2INT),
            pair<long double, int>("MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT),
            pair<int, int>("MPI_2INTEGER", MPI_2INTEGER),
            pair<float, float>("MPI_2REAL", MPI_2REAL),
            pair<double, double>("MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION),
        };
        std::erase_if(table, [](const Basic& basic) { return basic.type == MPI_DATATYPE_NULL; });
        return table;
    }();
    return all;
}

MPI_Op handle_of(Red red) {
    static const MPI_Op handles[] = {MPI_MAX, MPI_MIN,  MPI_SUM,  MPI_PROD,   MPI_LAND,   MPI_BAND,    MPI_LOR,
                                     MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
    return handles[static_cast<std::size_t>(red)];
}

const char* name_of(Red red) {
    static const char* const names[] = {"MAX", "MIN",  "SUM",  "PROD",   "LAND",   "BAND",    "LOR",
                                        "BOR", "LXOR", "BXOR", "MINLOC", "MAXLOC", "REPLACE", "NO_OP"};
    return names[static_cast<std::size_t>(red)];
}

bool admits(Red red, const Basic& basic) {
    const Group group = basic.group;
    switch (red) {
        case Red::Max:
        case Red::Min:
            return group == Group::Integer || group == Group::Floating;
        case Red::Sum:
        case Red::Prod:
            return group == Group::Integer || group == Group::Floating || group == Group::Complex;
        case Red::Land:
        case Red::Lor:
        case Red::Lxor:
            return basic.truth;
        case Red::Band:
        case Red::Bor:
        case Red::Bxor:
            return group == Group::Integer;
        case Red::Minloc:
        case Red::Maxloc:
            return group == Group::Pair;
        default:
            return true;
    }
}

bool commutes(Red red, const Basic& basic) {
    // The parts of complex products cancel to zeros whose sign depends on the order.
    if (basic.group == Group::Complex) return red == Red::Sum;
    return red != Red::Replace && red != Red::NoOp && admits(red, basic);
}

}  // namespace diff
