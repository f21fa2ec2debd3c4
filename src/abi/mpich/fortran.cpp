// The function that MPICH's Fortran layer calls beside MPI_X and PMPI_X: mpi_win_get_attr_ and mpi_win_get_attr_f08_
// fetch attributes through MPII_Win_get_attr. Fortran's rules for predefined attributes apply there (MPI 4.1
// section 19.3.7): the value is the integer itself, not its address.
#include <cstring>

#include "abi/abi.h"

namespace osc::abi {
namespace {

// The kinds of attribute value that MPICH's Fortran layer requests, in the order of its interface.
constexpr int kPointerValue = 0;
using GetAttr = int (*)(MPI_Win, int, void*, int*, int);

// A predefined key in Fortran is the key in C plus one.
int c_keyval(int keyval) {
    for (const int known : {MPI_WIN_BASE, MPI_WIN_SIZE, MPI_WIN_DISP_UNIT, MPI_WIN_CREATE_FLAVOR, MPI_WIN_MODEL})
        if (keyval == known + 1) return known;
    return keyval;
}

int get_attr(MPI_Win win, int keyval, void* value, int* flag, int kind) {
    static const auto host = reinterpret_cast<GetAttr>(host::host_symbol("MPII_Win_get_attr"));
    const int key = c_keyval(keyval);
    Attribute found{};
    if (!served_attribute(win, key, found)) return host(win, keyval, value, flag, kind);
    *flag = 1;
    if (kind == kPointerValue && keyval == key)
        std::memcpy(value, &found.pointer, sizeof found.pointer);
    else
        std::memcpy(value, &found.integer, sizeof found.integer);
    return MPI_SUCCESS;
}

}  // namespace

void* fortran_function(const char* name) {
    return std::strcmp(name, "MPII_Win_get_attr") == 0 ? reinterpret_cast<void*>(&get_attr) : nullptr;
}

}  // namespace osc::abi
