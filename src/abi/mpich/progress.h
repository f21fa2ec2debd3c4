// The progress of MPICH and the libraries made from it, in their own ABI and in that of the standard.
#pragma once

#include "abi/abi.h"

namespace osc::abi::mpich {

extern const Progress kProgress;

}  // namespace osc::abi::mpich
