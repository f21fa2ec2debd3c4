// Types of MPI_Type_create_f90_integer, _real and _complex count as predefined ones (MPI 4.1 section 19.1.9), in every
// operation that takes those only.
#include <complex>
#include <cstring>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op",
             "MPI_Compare_and_swap")

namespace {

MPI_Datatype integer(int digits) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_integer(digits, &type);
    return type;
}
MPI_Datatype real(int digits, int range) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_real(digits, range, &type);
    return type;
}
MPI_Datatype complex(int digits, int range) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_complex(digits, range, &type);
    return type;
}

// All operations on elements 0 to 5 of type T, by `type` alone and mixed with the named type of the same kind.
template <class T>
void check(WindowKind kind, MPI_Datatype type, MPI_Datatype named, bool swaps) {
    Returning win(kind, 8 * sizeof(T));
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    CHECK_EQ(bytes, static_cast<int>(sizeof(T)));
    T* const base = win.base<T>();
    for (int i = 0; i < 8; ++i)
        base[i] = T(10 + i);
    MPI_Datatype strided;
    MPI_Type_vector(2, 1, 2, type, &strided);
    MPI_Type_commit(&strided);
    MPI_Barrier(MPI_COMM_WORLD);
    const T in[2] = {T(3), T(4)};
    const T equal = T(11), other = T(99);
    T out[6] = {};
    const auto at = [&](std::size_t i) { return win.at(right(), i * sizeof(T)); };
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win);
    CHECK_OK(MPI_Fetch_and_op(in, &out[0], type, right(), at(0), MPI_SUM, win));
    if (swaps) {
        CHECK_OK(MPI_Compare_and_swap(in, &equal, &out[1], type, right(), at(1), win));
        CHECK_OK(MPI_Compare_and_swap(in, &other, &out[2], type, right(), at(2), win));
    }
    CHECK_OK(MPI_Accumulate(in, 2, type, right(), at(3), 1, strided, MPI_PROD, win));
    CHECK_OK(MPI_Get_accumulate(in, 1, named, &out[3], 1, type, right(), at(4), 1, type, MPI_REPLACE, win));
    CHECK_OK(MPI_Fetch_and_op(nullptr, &out[4], type, right(), at(6), MPI_NO_OP, win));
    CHECK_OK(MPI_Put(in, 1, type, right(), at(7), 1, named, win));
    MPI_Win_flush(right(), win);
    CHECK_OK(MPI_Get(&out[5], 1, type, right(), at(7), 1, type, win));
    MPI_Win_unlock(right(), win);
    MPI_Barrier(MPI_COMM_WORLD);
    const T wanted_out[6] = {T(10), swaps ? T(11) : T(0), swaps ? T(12) : T(0), T(14), T(16), T(3)};
    const T wanted[8] = {T(13), swaps ? T(3) : T(11), T(12), T(39), T(3), T(60), T(16), T(3)};
    for (std::size_t i = 0; i < 6; ++i)
        CHECK(out[i] == wanted_out[i]);
    for (std::size_t i = 0; i < 8; ++i)
        CHECK(base[i] == wanted[i]);
    MPI_Type_free(&strided);
}

}  // namespace

CASE_BY_KIND(unnamed_integers) {
    HOST_CANNOT("the host alone refuses them");
    check<std::int8_t>(kind, integer(2), MPI_INT8_T, true);
    check<std::int16_t>(kind, integer(4), MPI_INT16_T, true);
    check<std::int32_t>(kind, integer(9), MPI_INT32_T, true);
    check<std::int64_t>(kind, integer(18), MPI_INT64_T, true);
}

CASE_BY_KIND(unnamed_reals_and_complexes) {
    HOST_CANNOT("the host alone refuses them");
    check<float>(kind, real(6, 37), MPI_FLOAT, false);
    check<double>(kind, real(15, 307), MPI_DOUBLE, false);
    check<std::complex<float>>(kind, complex(6, 37), MPI_C_FLOAT_COMPLEX, false);
    check<std::complex<double>>(kind, complex(15, 307), MPI_C_DOUBLE_COMPLEX, false);
}

// Derived types stay refused, with one element too.
CASE(derived_types_are_no_elements) {
    HOST_CANNOT("the host alone gives another class");
    Returning window;
    MPI_Datatype one, padded;
    MPI_Type_contiguous(1, integer(9), &one);
    MPI_Type_create_resized(integer(9), 0, 8, &padded);
    const int value = 1;
    int result = -1;
    MPI_Win_lock_all(0, window);
    for (MPI_Datatype* type : {&one, &padded}) {
        MPI_Type_commit(type);
        CHECK_CLASS(MPI_Fetch_and_op(&value, &result, *type, right(), 0, MPI_SUM, window), MPI_ERR_TYPE);
        CHECK_CLASS(MPI_Compare_and_swap(&value, &value, &result, *type, right(), 0, window), MPI_ERR_TYPE);
        MPI_Type_free(type);
    }
    MPI_Win_unlock_all(window);
    CHECK_EQ(result, -1);
}
