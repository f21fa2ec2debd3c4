// The predefined attributes of libosc's windows, for C and for the host's Fortran layer.
#pragma once

#include "window/window.h"

namespace osc {

/// The value that MPI_Win_get_attr returns in C for a predefined key (MPI 4.1 section 12.2.6); false for other keys.
bool predefined_attribute(Window& window, int keyval, void*& value);

}  // namespace osc
