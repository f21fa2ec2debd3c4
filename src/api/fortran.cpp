// Attributes of libosc's windows for the host's Fortran layer, which does not call MPI_Win_get_attr.
#include "abi/abi.h"
#include "api/attributes.h"
#include "api/routes.h"
#include "window/registry.h"

namespace osc {

bool abi::served_attribute(MPI_Win handle, int keyval, Attribute& value) {
    Window* const window = find_window(handle);
    if (window == nullptr || !predefined_attribute(*window, keyval, value.pointer)) return false;
    count_served(Entry::Win_get_attr);
    switch (keyval) {
        case MPI_WIN_BASE:
            value.integer = reinterpret_cast<MPI_Aint>(value.pointer);
            break;
        case MPI_WIN_SIZE:
            value.integer = window->bytes;
            break;
        case MPI_WIN_DISP_UNIT:
            value.integer = window->unit;
            break;
        case MPI_WIN_CREATE_FLAVOR:
            value.integer = window->flavor;
            break;
        default:
            value.integer = window->model;
            break;
    }
    return true;
}

}  // namespace osc
