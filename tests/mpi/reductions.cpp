// Every predefined operation on every predefined type that admits it, by accumulate, get_accumulate and fetch_and_op,
// against MPI_Reduce_local of the host on the same values.
#include <complex>
#include <cstdint>
#include <cstring>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op", "MPI_Win_flush")

namespace {

constexpr int kCount = 37;

// The groups of MPI 4.1 section 6.9.2.
// NoLogic: integers of Fortran and of several languages, on which MPI 4.1 section 6.9.2 has no logical operations.
enum Group { Integer, NoLogic, Floating, SumOnly, Complex, Logical, Pair };

struct Type {
    const char* name;
    MPI_Datatype type;
    Group group;
    // Writes element i of a set of values that are small enough for products and exact in every type.
    void (*fill)(void* element, int i);
};

template <class T>
void number(void* element, int i) {
    const T value = static_cast<T>(1 + i % 3);
    std::memcpy(element, &value, sizeof value);
}
void logical(void* element, int i) {
    const bool value = i % 2 == 0;
    std::memcpy(element, &value, sizeof value);
}
// 1, 2 and 3 in the 16 bits of a float of IEEE 754 and of a bfloat16.
[[maybe_unused]] void half(void* element, int i) {
    constexpr std::uint16_t bits[] = {0x3c00, 0x4000, 0x4200};
    std::memcpy(element, &bits[i % 3], sizeof bits[0]);
}
[[maybe_unused]] void half_complex(void* element, int i) {
    half(element, i);
    half(static_cast<char*>(element) + 2, i + 1);
}
[[maybe_unused]] void bfloat16(void* element, int i) {
    constexpr std::uint16_t bits[] = {0x3f80, 0x4000, 0x4040};
    std::memcpy(element, &bits[i % 3], sizeof bits[0]);
}
[[maybe_unused]] void logical16(void* element, int i) {
    std::memset(element, 0, 16);
    logical(element, i);
}
template <class T>
void pair(void* element, int i) {
    struct {
        T value;
        int index;
    } both = {};
    both.value = static_cast<T>(i % 5);
    both.index = i % 4;
    std::memcpy(element, &both.value, sizeof both.value);
    std::memcpy(static_cast<char*>(element) + offsetof(decltype(both), index), &both.index, sizeof both.index);
}

#define TYPE(type, group, fill) \
    { #type, type, group, fill }
const Type kTypes[] = {
    TYPE(MPI_CHAR, Integer, number<char>),
    TYPE(MPI_SIGNED_CHAR, Integer, number<signed char>),
    TYPE(MPI_UNSIGNED_CHAR, Integer, number<unsigned char>),
    TYPE(MPI_SHORT, Integer, number<short>),
    TYPE(MPI_UNSIGNED_SHORT, Integer, number<unsigned short>),
    TYPE(MPI_INT, Integer, number<int>),
    TYPE(MPI_UNSIGNED, Integer, number<unsigned>),
    TYPE(MPI_LONG, Integer, number<long>),
    TYPE(MPI_UNSIGNED_LONG, Integer, number<unsigned long>),
    TYPE(MPI_LONG_LONG, Integer, number<long long>),
    TYPE(MPI_UNSIGNED_LONG_LONG, Integer, number<unsigned long long>),
    TYPE(MPI_INT8_T, Integer, number<std::int8_t>),
    TYPE(MPI_INT16_T, Integer, number<std::int16_t>),
    TYPE(MPI_INT32_T, Integer, number<std::int32_t>),
    TYPE(MPI_INT64_T, Integer, number<std::int64_t>),
    TYPE(MPI_UINT8_T, Integer, number<std::uint8_t>),
    TYPE(MPI_UINT16_T, Integer, number<std::uint16_t>),
    TYPE(MPI_UINT32_T, Integer, number<std::uint32_t>),
    TYPE(MPI_UINT64_T, Integer, number<std::uint64_t>),
    TYPE(MPI_AINT, NoLogic, number<MPI_Aint>),
    TYPE(MPI_OFFSET, NoLogic, number<MPI_Offset>),
    TYPE(MPI_COUNT, NoLogic, number<MPI_Count>),
    TYPE(MPI_INTEGER, NoLogic, number<int>),
    TYPE(MPI_INTEGER1, NoLogic, number<std::int8_t>),
    TYPE(MPI_INTEGER2, NoLogic, number<std::int16_t>),
    TYPE(MPI_INTEGER4, NoLogic, number<std::int32_t>),
    TYPE(MPI_INTEGER8, NoLogic, number<std::int64_t>),
    TYPE(MPI_FLOAT, Floating, number<float>),
    TYPE(MPI_DOUBLE, Floating, number<double>),
    TYPE(MPI_LONG_DOUBLE, Floating, number<long double>),
    TYPE(MPI_REAL, Floating, number<float>),
    TYPE(MPI_DOUBLE_PRECISION, Floating, number<double>),
    TYPE(MPI_REAL4, Floating, number<float>),
    TYPE(MPI_REAL8, Floating, number<double>),
    TYPE(MPI_C_FLOAT_COMPLEX, Complex, number<std::complex<float>>),
    TYPE(MPI_C_DOUBLE_COMPLEX, Complex, number<std::complex<double>>),
    TYPE(MPI_C_LONG_DOUBLE_COMPLEX, Complex, number<std::complex<long double>>),
    TYPE(MPI_COMPLEX, Complex, number<std::complex<float>>),
    TYPE(MPI_DOUBLE_COMPLEX, Complex, number<std::complex<double>>),
    TYPE(MPI_COMPLEX8, Complex, number<std::complex<float>>),
    TYPE(MPI_COMPLEX16, Complex, number<std::complex<double>>),
    TYPE(MPI_C_BOOL, Logical, logical),
    TYPE(MPI_LOGICAL, Logical, number<int>),
#ifdef MPI_REAL2
    TYPE(MPI_REAL2, Floating, half),
#endif
#ifdef MPI_COMPLEX4
    TYPE(MPI_COMPLEX4, Complex, half_complex),
#endif
#ifdef MPI_LOGICAL16
    TYPE(MPI_LOGICAL16, Logical, logical16),
#endif
#ifdef MPIX_BFLOAT16
    // MPICH 5.0.2 ends the program in MPI_Reduce_local of any other operation.
    TYPE(MPIX_BFLOAT16, SumOnly, bfloat16),
#endif
    // MPI admits no reduction on MPI_CHAR and MPI_CHARACTER, and only bitwise ones on MPI_BYTE; programs use them all.
    TYPE(MPI_CHARACTER, Integer, number<char>),
    TYPE(MPI_BYTE, Integer, number<unsigned char>),
    TYPE(MPI_FLOAT_INT, Pair, pair<float>),
    TYPE(MPI_DOUBLE_INT, Pair, pair<double>),
    TYPE(MPI_LONG_INT, Pair, pair<long>),
    TYPE(MPI_SHORT_INT, Pair, pair<short>),
    TYPE(MPI_2INT, Pair, pair<int>),
    TYPE(MPI_LONG_DOUBLE_INT, Pair, pair<long double>),
};

struct Operation {
    const char* name;
    MPI_Op op;
};
const Operation kOps[] = {{"MPI_MAX", MPI_MAX},         {"MPI_MIN", MPI_MIN},       {"MPI_SUM", MPI_SUM},
                          {"MPI_PROD", MPI_PROD},       {"MPI_LAND", MPI_LAND},     {"MPI_BAND", MPI_BAND},
                          {"MPI_LOR", MPI_LOR},         {"MPI_BOR", MPI_BOR},       {"MPI_LXOR", MPI_LXOR},
                          {"MPI_BXOR", MPI_BXOR},       {"MPI_MINLOC", MPI_MINLOC}, {"MPI_MAXLOC", MPI_MAXLOC},
                          {"MPI_REPLACE", MPI_REPLACE}, {"MPI_NO_OP", MPI_NO_OP}};

bool admits(const Type& type, MPI_Op op) {
    if (op == MPI_REPLACE || op == MPI_NO_OP) return true;
    if (op == MPI_MINLOC || op == MPI_MAXLOC) return type.group == Pair;
    const bool order = op == MPI_MAX || op == MPI_MIN, sum = op == MPI_SUM || op == MPI_PROD;
    const bool logic = op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR;
    switch (type.group) {
        case Integer:
            return true;
        case NoLogic:
            return !logic;
        case Floating:
            return order || sum;
        case SumOnly:
            return op == MPI_SUM;
        case Complex:
            return sum;
        case Logical:
            return logic;
        default:
            return false;
    }
}

// The type as which MPI_Reduce_local of every host takes it.
MPI_Datatype reduced_as(MPI_Datatype type) {
    return type == MPI_BYTE ? MPI_UNSIGNED_CHAR : type == MPI_CHARACTER ? MPI_CHAR : type;
}

// Bytes that carry values: an extended double has padding, and so have pairs.
bool same(const Type& type, const char* a, const char* b, std::size_t bytes) {
    if (type.type == MPI_LONG_DOUBLE) return std::memcmp(a, b, 10) == 0;
    if (type.type == MPI_C_LONG_DOUBLE_COMPLEX) return !std::memcmp(a, b, 10) && !std::memcmp(a + 16, b + 16, 10);
    if (type.type == MPI_LONG_DOUBLE_INT) return !std::memcmp(a, b, 10) && !std::memcmp(a + 16, b + 16, 4);
    if (type.type == MPI_SHORT_INT) return !std::memcmp(a, b, 2) && !std::memcmp(a + 4, b + 4, 4);
    if (type.group == Pair) bytes = type.type == MPI_DOUBLE_INT || type.type == MPI_LONG_INT ? 12 : 8;
    return std::memcmp(a, b, bytes) == 0;
}

// A host that lacks a type names it MPI_DATATYPE_NULL, or gives it no size.
bool is_lacking(MPI_Datatype type) {
    int size = MPI_UNDEFINED;
    return type == MPI_DATATYPE_NULL || MPI_Type_size(type, &size) != MPI_SUCCESS || size == MPI_UNDEFINED;
}

enum Form { Plain, Fetching, Single };

void check(const Window& win, const Type& type, const Operation& op, Form form) {
    MPI_Aint lower = 0, extent = 0;
    MPI_Type_get_extent(type.type, &lower, &extent);
    const auto step = static_cast<std::size_t>(extent), bytes = step * kCount;
    const int target = right();
    std::vector<char> before(bytes), origin(bytes), wanted(bytes), result(bytes), after(bytes);
    for (int i = 0; i < kCount; ++i) {
        type.fill(&before[static_cast<std::size_t>(i) * step], i);
        type.fill(&origin[static_cast<std::size_t>(i) * step], i / 2 + 1);
    }
    wanted = op.op == MPI_REPLACE ? origin : before;
    if (op.op != MPI_REPLACE && op.op != MPI_NO_OP)
        MPI_Reduce_local(origin.data(), wanted.data(), kCount, reduced_as(type.type), op.op);
    const MPI_Win w = win;
    const int n = static_cast<int>(bytes);
    MPI_Put(before.data(), n, MPI_BYTE, target, win.at(target, 0), n, MPI_BYTE, w);
    MPI_Win_flush(target, w);
    if (form == Plain) {
        CHECK_OK(
            MPI_Accumulate(origin.data(), kCount, type.type, target, win.at(target, 0), kCount, type.type, op.op, w));
    } else if (form == Fetching) {
        CHECK_OK(MPI_Get_accumulate(origin.data(), kCount, type.type, result.data(), kCount, type.type, target,
                                    win.at(target, 0), kCount, type.type, op.op, w));
    } else {
        for (std::size_t i = 0; i < kCount; ++i)
            CHECK_OK(MPI_Fetch_and_op(&origin[i * step], &result[i * step], type.type, target, win.at(target, i * step),
                                      op.op, w));
    }
    MPI_Win_flush(target, w);
    MPI_Get(after.data(), n, MPI_BYTE, target, win.at(target, 0), n, MPI_BYTE, w);
    MPI_Win_flush(target, w);
    for (std::size_t i = 0; i < kCount; ++i) {
        const bool stored = same(type, &after[i * step], &wanted[i * step], step);
        const bool fetched = form == Plain || same(type, &result[i * step], &before[i * step], step);
        if (stored && fetched) continue;
        osct::fail(__FILE__, __LINE__,
                   std::string(op.name) + " of " + type.name +
                       (stored ? ": wrong value fetched" : ": wrong value stored") + " at element " +
                       std::to_string(i) + ", form " + std::to_string(form));
        return;
    }
}

void every_pair(WindowKind kind, Form form) {
    Window win(kind, 4096);
    MPI_Win_lock_all(0, win);
    for (const Type& type : kTypes) {
        if (is_lacking(type.type)) continue;
        for (const Operation& op : kOps) {
            const bool plain_only = form == Plain && op.op == MPI_NO_OP;
            if (admits(type, op.op) && !plain_only) check(win, type, op, form);
        }
    }
    MPI_Win_unlock_all(win);
}

}  // namespace

CASE(accumulate) {
    for (WindowKind kind : kAllWindowKinds)
        every_pair(kind, Plain);
}
CASE(get_accumulate) {
    for (WindowKind kind : kAllWindowKinds)
        every_pair(kind, Fetching);
}
CASE(fetch_and_op) {
    for (WindowKind kind : kAllWindowKinds)
        every_pair(kind, Single);
}

// As over MPICH and Open MPI, data that is only moved may be of other predefined types at the origin than at the
// target.
CASE(types_that_differ_where_data_is_moved) {
    constexpr int kLongs = 6, kBytes = kLongs * 8;
    const int target = right();
    MPI_Datatype odd_bytes = MPI_DATATYPE_NULL, spread_longs = MPI_DATATYPE_NULL;
    MPI_Type_vector(kBytes / 3, 3, 5, MPI_BYTE, &odd_bytes);
    MPI_Type_vector(kLongs / 2, 2, 3, MPI_LONG, &spread_longs);
    MPI_Type_commit(&odd_bytes);
    MPI_Type_commit(&spread_longs);
    // Each shape of the same 48 bytes of data, and where byte i of the data lies.
    struct Shape {
        int count;
        MPI_Datatype type;
        std::size_t (*at)(std::size_t);
    };
    const Shape shapes[] = {
        {kBytes, MPI_BYTE, [](std::size_t i) { return i; }},
        {kLongs, MPI_LONG, [](std::size_t i) { return i; }},
        {2 * kLongs, MPI_FLOAT, [](std::size_t i) { return i; }},
        {1, odd_bytes, [](std::size_t i) { return i / 3 * 5 + i % 3; }},
        {1, spread_longs, [](std::size_t i) { return i / 16 * 24 + i % 16; }},
    };
    for (WindowKind kind : kAllWindowKinds) {
        Window win(kind, 4096);
        const MPI_Win w = win;
        MPI_Win_lock_all(0, w);
        unsigned char round = 0;
        for (const Shape& mine : shapes)
            for (const Shape& theirs : shapes) {
                ++round;
                std::vector<unsigned char> data(129), there(128), result(129, 0), expected(128, 0xee);
                for (std::size_t i = 0; i < kBytes; ++i) {
                    data[1 + mine.at(i)] = static_cast<unsigned char>(round * 3 + i);
                    expected[theirs.at(i)] = static_cast<unsigned char>(round * 3 + i);
                }
                const std::vector<unsigned char> empty(128, 0xee);
                MPI_Put(empty.data(), 128, MPI_BYTE, target, win.at(target, 0), 128, MPI_BYTE, w);
                MPI_Win_flush(target, w);
                // An odd address, which MPI_BYTE admits.
                CHECK_OK(MPI_Accumulate(&data[1], mine.count, mine.type, target, win.at(target, 0), theirs.count,
                                        theirs.type, MPI_REPLACE, w));
                MPI_Win_flush(target, w);
                MPI_Get(there.data(), 128, MPI_BYTE, target, win.at(target, 0), 128, MPI_BYTE, w);
                MPI_Win_flush(target, w);
                CHECK(there == expected);
                CHECK_OK(MPI_Get_accumulate(nullptr, 0, MPI_BYTE, &result[1], mine.count, mine.type, target,
                                            win.at(target, 0), theirs.count, theirs.type, MPI_NO_OP, w));
                MPI_Win_flush(target, w);
                for (std::size_t i = 0; i < kBytes; ++i)
                    CHECK(result[1 + mine.at(i)] == data[1 + mine.at(i)]);
            }
        MPI_Win_unlock_all(w);
    }
    MPI_Type_free(&odd_bytes);
    MPI_Type_free(&spread_longs);
}
