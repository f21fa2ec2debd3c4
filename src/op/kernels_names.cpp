// Names of operations, types and instruction sets for messages to the user.
#include "op/kernels.h"

namespace osc::op {
namespace {

/// The name at `value` in a table with one entry per enumerator.
template <class Enum, std::size_t Size>
const char* find(const char* const (&table)[Size], Enum value) {
    static_assert(Size == static_cast<std::size_t>(Enum::Count));
    const auto index = static_cast<std::size_t>(value);
    return index < Size ? table[index] : "invalid";
}

constexpr const char* op_names[] = {
    "none",    "MPI_MAX",  "MPI_MIN",  "MPI_SUM",    "MPI_PROD",   "MPI_LAND",    "MPI_BAND",  "MPI_LOR",
    "MPI_BOR", "MPI_LXOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC", "MPI_REPLACE", "MPI_NO_OP",
};

constexpr const char* basic_names[] = {
    "none",
    "8-bit integer",
    "16-bit integer",
    "32-bit integer",
    "64-bit integer",
    "128-bit integer",
    "8-bit unsigned integer",
    "16-bit unsigned integer",
    "32-bit unsigned integer",
    "64-bit unsigned integer",
    "16-bit float",
    "bfloat16",
    "float",
    "double",
    "long double",
    "128-bit float",
    "16-bit float complex",
    "float complex",
    "double complex",
    "long double complex",
    "128-bit complex",
    "bool",
    "1-byte logical",
    "2-byte logical",
    "4-byte logical",
    "8-byte logical",
    "16-byte logical",
    "byte",
    "wide character",
    "float and int",
    "double and int",
    "long and int",
    "short and int",
    "two int",
    "long double and int",
    "two float",
    "two double",
};

}  // namespace

const char* name(Op op) noexcept {
    return find(op_names, op);
}

const char* name(Basic basic) noexcept {
    return find(basic_names, basic);
}

}  // namespace osc::op
