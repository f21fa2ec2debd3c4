// The predefined datatypes of C, C++ and Fortran by representation: one table for all hosts, and the types that only
// some have.
#include <initializer_list>
#include <span>
#include <type_traits>

#include "host/datatype.h"

namespace osc::host::detail {

namespace {

template <class T>
constexpr Basic integer() {
    constexpr bool plus = std::is_signed_v<T>;
    switch (sizeof(T)) {
        case 1:
            return plus ? Basic::I8 : Basic::U8;
        case 2:
            return plus ? Basic::I16 : Basic::U16;
        case 4:
            return plus ? Basic::I32 : Basic::U32;
        default:
            return plus ? Basic::I64 : Basic::U64;
    }
}

// A host that lacks a type names it MPI_DATATYPE_NULL.
void enter(std::span<const abi::PredefinedType> types) {
    for (const auto& [type, basic] : types)
        if (type != MPI_DATATYPE_NULL) abi::enter_type(type, basic);
}

void enter(std::initializer_list<abi::PredefinedType> types) {
    enter(std::span(types));
}

}  // namespace

void enter_predefined() {
    enter({
        // The standard has no reductions of MPI_CHAR and MPI_CHARACTER, and only bitwise ones of MPI_BYTE. MPICH and
        // Open MPI take all three as integers, and programs rely on it.
        {MPI_CHAR, integer<char>()},
        {MPI_SIGNED_CHAR, Basic::I8},
        {MPI_UNSIGNED_CHAR, Basic::U8},
        {MPI_BYTE, Basic::Byte},
        {MPI_PACKED, Basic::Byte},
        {MPI_WCHAR, Basic::Char4},
        {MPI_SHORT, integer<short>()},
        {MPI_UNSIGNED_SHORT, integer<unsigned short>()},
        {MPI_INT, integer<int>()},
        {MPI_UNSIGNED, integer<unsigned>()},
        {MPI_LONG, integer<long>()},
        {MPI_UNSIGNED_LONG, integer<unsigned long>()},
        {MPI_LONG_LONG_INT, integer<long long>()},
        {MPI_UNSIGNED_LONG_LONG, integer<unsigned long long>()},
        {MPI_FLOAT, Basic::F32},
        {MPI_DOUBLE, Basic::F64},
        {MPI_LONG_DOUBLE, Basic::LongDouble},
        {MPI_INT8_T, Basic::I8},
        {MPI_INT16_T, Basic::I16},
        {MPI_INT32_T, Basic::I32},
        {MPI_INT64_T, Basic::I64},
        {MPI_UINT8_T, Basic::U8},
        {MPI_UINT16_T, Basic::U16},
        {MPI_UINT32_T, Basic::U32},
        {MPI_UINT64_T, Basic::U64},
        {MPI_AINT, integer<MPI_Aint>()},
        {MPI_OFFSET, integer<MPI_Offset>()},
        {MPI_COUNT, integer<MPI_Count>()},
        {MPI_C_BOOL, Basic::Bool},
        {MPI_C_FLOAT_COMPLEX, Basic::C32},
        {MPI_C_DOUBLE_COMPLEX, Basic::C64},
        {MPI_C_LONG_DOUBLE_COMPLEX, Basic::CLongDouble},
        {MPI_CXX_BOOL, Basic::Bool},
        {MPI_CXX_FLOAT_COMPLEX, Basic::C32},
        {MPI_CXX_DOUBLE_COMPLEX, Basic::C64},
        {MPI_CXX_LONG_DOUBLE_COMPLEX, Basic::CLongDouble},
        {MPI_FLOAT_INT, Basic::FloatInt},
        {MPI_DOUBLE_INT, Basic::DoubleInt},
        {MPI_LONG_INT, Basic::LongInt},
        {MPI_SHORT_INT, Basic::ShortInt},
        {MPI_2INT, Basic::IntInt},
        {MPI_LONG_DOUBLE_INT, Basic::LongDoubleInt},
    });
    // Fortran's default kinds, as gfortran and every compiler that a host supports have them.
    enter({
        {MPI_CHARACTER, integer<char>()},
        {MPI_LOGICAL, Basic::Logical4},
        {MPI_INTEGER, Basic::I32},
        {MPI_REAL, Basic::F32},
        {MPI_DOUBLE_PRECISION, Basic::F64},
        {MPI_COMPLEX, Basic::C32},
        {MPI_DOUBLE_COMPLEX, Basic::C64},
        {MPI_2INTEGER, Basic::IntInt},
        {MPI_2REAL, Basic::TwoF32},
        {MPI_2DOUBLE_PRECISION, Basic::TwoF64},
    });
    // Types that the standard leaves to the host.
    enter({
#ifdef MPI_INTEGER1
        {MPI_INTEGER1, Basic::I8},
#endif
#ifdef MPI_INTEGER2
        {MPI_INTEGER2, Basic::I16},
#endif
#ifdef MPI_INTEGER4
        {MPI_INTEGER4, Basic::I32},
#endif
#ifdef MPI_INTEGER8
        {MPI_INTEGER8, Basic::I64},
#endif
#ifdef MPI_INTEGER16
        {MPI_INTEGER16, Basic::I128},
#endif
#ifdef MPI_REAL2
        {MPI_REAL2, Basic::F16},
#endif
#ifdef MPI_REAL4
        {MPI_REAL4, Basic::F32},
#endif
#ifdef MPI_REAL8
        {MPI_REAL8, Basic::F64},
#endif
#ifdef MPI_REAL16
        {MPI_REAL16, Basic::F128},
#endif
#ifdef MPI_COMPLEX4
        {MPI_COMPLEX4, Basic::C16},
#endif
#ifdef MPI_COMPLEX8
        {MPI_COMPLEX8, Basic::C32},
#endif
#ifdef MPI_COMPLEX16
        {MPI_COMPLEX16, Basic::C64},
#endif
#ifdef MPI_COMPLEX32
        {MPI_COMPLEX32, Basic::C128},
#endif
#ifdef MPI_LOGICAL1
        {MPI_LOGICAL1, Basic::Logical1},
#endif
#ifdef MPI_LOGICAL2
        {MPI_LOGICAL2, Basic::Logical2},
#endif
#ifdef MPI_LOGICAL4
        {MPI_LOGICAL4, Basic::Logical4},
#endif
#ifdef MPI_LOGICAL8
        {MPI_LOGICAL8, Basic::Logical8},
#endif
#ifdef MPI_LOGICAL16
        {MPI_LOGICAL16, Basic::Logical16},
#endif
    });
    enter(abi::own_types());
}

}  // namespace osc::host::detail
