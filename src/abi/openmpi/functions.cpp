// The functions of Open MPI's Fortran layer that read the attributes of the host's window themselves. The others call
// PMPI_X. A predefined key in Fortran is the key in C.
#include <cstring>

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

// One for each name: the host's function of that name answers for its own windows.
constexpr const char* kCalled = "mpi_win_get_attr_";
constexpr const char* kProfiled = "pmpi_win_get_attr_";
template <const char* const& kName>
void get_attr_as(MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value, MPI_Fint* flag, MPI_Fint* error) {
    get_attr(kName, win, keyval, value, flag, error);
}

}  // namespace

void* function_for(const char* name) {
    if (std::strcmp(name, kCalled) == 0) return reinterpret_cast<void*>(&get_attr_as<kCalled>);
    if (std::strcmp(name, kProfiled) == 0) return reinterpret_cast<void*>(&get_attr_as<kProfiled>);
    return nullptr;
}

}  // namespace osc::abi
