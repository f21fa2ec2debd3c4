// The function that the host's Fortran layer calls beside MPI_X and PMPI_X: MPICH's mpi_win_get_attr_ and
// mpi_win_get_attr_f08_ fetch attributes through MPII_Win_get_attr. Fortran's rules for predefined attributes apply
// there (MPI 4.1 section 19.3.7): the value is the integer itself, not its address.
#include <cstring>

#include "host/real.h"
#include "interpose/attributes.h"
#include "interpose/routes.h"
#include "window/registry.h"

namespace {

// The kinds of attribute value that MPICH's Fortran layer requests, in the order of its interface.
constexpr int kPointerValue = 0;
using GetAttr = int (*)(MPI_Win, int, void*, int*, int);

// A predefined key in Fortran is the key in C plus one.
int c_keyval(int keyval) {
    switch (keyval) {
        case MPI_WIN_BASE + 1:
            return MPI_WIN_BASE;
        case MPI_WIN_SIZE + 1:
            return MPI_WIN_SIZE;
        case MPI_WIN_DISP_UNIT + 1:
            return MPI_WIN_DISP_UNIT;
        case MPI_WIN_CREATE_FLAVOR + 1:
            return MPI_WIN_CREATE_FLAVOR;
        case MPI_WIN_MODEL + 1:
            return MPI_WIN_MODEL;
        default:
            return keyval;
    }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag,
                                                                        int kind) {
    static const auto host = reinterpret_cast<GetAttr>(osc::host::host_symbol("MPII_Win_get_attr"));
    osc::Window* const window = osc::find_window(win);
    void* found = nullptr;
    if (window == nullptr || !osc::predefined_attribute(*window, c_keyval(keyval), found))
        return host(win, keyval, value, flag, kind);
    osc::count_served(osc::Entry::Win_get_attr);
    *flag = 1;
    if (kind == kPointerValue && keyval == c_keyval(keyval)) {
        std::memcpy(value, &found, sizeof found);
        return MPI_SUCCESS;
    }
    MPI_Aint number = 0;
    switch (c_keyval(keyval)) {
        case MPI_WIN_BASE:
            number = reinterpret_cast<MPI_Aint>(found);
            break;
        case MPI_WIN_SIZE:
            number = window->bytes;
            break;
        case MPI_WIN_DISP_UNIT:
            number = window->unit;
            break;
        case MPI_WIN_CREATE_FLAVOR:
            number = window->flavor;
            break;
        default:
            number = window->model;
            break;
    }
    std::memcpy(value, &number, sizeof number);
    return MPI_SUCCESS;
}
