// The progress of Open MPI, in its own ABI and in that of the standard.
#pragma once

#include "abi/abi.h"

namespace osc::abi::openmpi {

extern const Progress kProgress;

}  // namespace osc::abi::openmpi
