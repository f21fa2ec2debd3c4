// Functions of libraries of MPICH's ABI beside MPI_X and PMPI_X. mpi_win_get_attr_ and mpi_win_get_attr_f08_ fetch
// attributes through MPII_Win_get_attr. Fortran's rules for predefined attributes apply there (MPI 4.1 section 19.3.7):
// the value is the integer itself, not its address. Intel MPI's notified operations begin with MPIX_Win_create_notify.
#include <cstring>

#include "abi/abi.h"
#include "base/log.h"

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

// The counters of the host's window would never rise: libosc moves the data.
int create_notify(MPI_Win win, int number) {
    static const auto host = reinterpret_cast<int (*)(MPI_Win, int)>(host::host_symbol("PMPIX_Win_create_notify"));
    Attribute base{};
    if (!served_attribute(win, MPI_WIN_BASE, base)) return host != nullptr ? host(win, number) : MPI_ERR_OTHER;
    base::say(
        "MPIX_Win_create_notify: libosc serves this window; its notified operations are those of osc/notify.h "
        "(OSC_Put_notify), and OSC_DISABLE=1 leaves all windows to the host");
    static const auto raise =
        reinterpret_cast<decltype(&::PMPI_Win_call_errhandler)>(host::host_symbol("PMPI_Win_call_errhandler"));
    raise(win, MPI_ERR_UNSUPPORTED_OPERATION);
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

}  // namespace

void* function_for(const char* name) {
    if (std::strcmp(name, "MPII_Win_get_attr") == 0) return reinterpret_cast<void*>(&get_attr);
    if (std::strcmp(name[0] == 'P' ? name + 1 : name, "MPIX_Win_create_notify") == 0)
        return reinterpret_cast<void*>(&create_notify);
    return nullptr;
}

}  // namespace osc::abi
