// The predefined attributes of our windows, for C and for the host's Fortran layer.
#pragma once

#include "window/window.h"

namespace osc {

/// What MPI_Win_get_attr gives in C for a predefined key (MPI 4.1 section 12.2.6); false for other keys.
bool predefined_attribute(Window& window, int keyval, void*& value);

}  // namespace osc
