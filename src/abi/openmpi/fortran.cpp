// The functions of Open MPI's Fortran layer that read the attributes of the host's window themselves. The others call
// PMPI_X. A predefined key in Fortran is the key in C.
#include "abi/abi.h"

namespace osc::abi {
namespace {

using GetAttr = void (*)(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Fint*, MPI_Fint*);

void get_attr(const char* name, MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value, MPI_Fint* flag, MPI_Fint* error) {
    Attribute found{};
    if (!served_attribute(window_of(*win), *keyval, found))
        return reinterpret_cast<GetAttr>(host::host_symbol(name))(win, keyval, value, flag, error);
    *value = found.integer;
    *flag = 1;
    if (error != nullptr) *error = MPI_SUCCESS;
}

}  // namespace
}  // namespace osc::abi

#define OSC_GET_ATTR(name)                                                                                        \
    extern "C" __attribute__((visibility("default"))) void name(MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value, \
                                                                MPI_Fint* flag, MPI_Fint* error);                 \
    void name(MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value, MPI_Fint* flag, MPI_Fint* error) {                \
        osc::abi::get_attr(#name, win, keyval, value, flag, error);                                               \
    }
OSC_GET_ATTR(mpi_win_get_attr_)
OSC_GET_ATTR(pmpi_win_get_attr_)
