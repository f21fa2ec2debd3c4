// The implementation of libosc's contract for one ABI (src/abi), without the rest of its library: it knows the
// predefined handles of the ABI, which needs no MPI_Init.
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "abi/abi.h"
#include "host/datatype.h"

namespace abi = osc::abi;
using osc::Basic;
using osc::Op;

// The rooms above define these.
void* osc::host::host_symbol(const char*) {
    return nullptr;
}
bool abi::served_attribute(MPI_Win, int, Attribute&) {
    return false;
}

namespace {

int g_errors = 0;

void check(bool right, const char* what) {
    if (right) return;
    std::printf("wrong: %s\n", what);
    ++g_errors;
}

void check_type(MPI_Datatype type, const char* name, Basic basic, std::int64_t plain_size) {
    const osc::op::TypeInfo* const info = abi::predefined(type);
    check(info != nullptr && info->basic == basic && info->key == abi::handle_key(type), name);
    check(abi::plain_size(type) == plain_size && abi::is_plain_of_8(type) == (plain_size == 8), name);
    check(abi::plain_basic(type) == (plain_size >= 0 ? basic : Basic::None), name);
    check(abi::plain_integer64(type) == (basic == Basic::I64 || basic == Basic::U64), name);
    check(abi::may_be_datatype(type) && abi::handle_of<MPI_Datatype>(abi::handle_key(type)) == type, name);
}

}  // namespace

int main() {
    check(abi::predefined(MPI_INT) == nullptr && abi::plain_size(MPI_INT) == -1, "a type before it is entered");
    osc::host::detail::enter_predefined();
    check_type(MPI_INT, "MPI_INT", Basic::I32, 4);
    check_type(MPI_DOUBLE, "MPI_DOUBLE", Basic::F64, 8);
    check_type(MPI_UINT64_T, "MPI_UINT64_T", Basic::U64, 8);
    check_type(MPI_BYTE, "MPI_BYTE", Basic::Byte, 1);
    check_type(MPI_DOUBLE_INT, "MPI_DOUBLE_INT", Basic::DoubleInt, -1);
    check_type(MPI_2INTEGER, "MPI_2INTEGER", Basic::IntInt, 8);
#ifdef MPI_REAL16
    check_type(MPI_REAL16, "MPI_REAL16", Basic::F128, 16);
#endif
    check(abi::predefined(MPI_DATATYPE_NULL) == nullptr && !abi::may_be_datatype(MPI_DATATYPE_NULL), "the null type");
    check(abi::op_of(MPI_MAX) == Op::Max && abi::op_of(MPI_SUM) == Op::Sum && abi::op_of(MPI_NO_OP) == Op::NoOp &&
              abi::op_of(MPI_OP_NULL) == Op::None,
          "operations");
    check(abi::window_index(abi::handle_key(MPI_WIN_NULL)) < abi::kWindowPlaces, "the place of a window");
    if (g_errors == 0) std::printf("No errors\n");
    return g_errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
