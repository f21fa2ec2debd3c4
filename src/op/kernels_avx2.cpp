// The kernels compiled for AVX2; kernels.cmake gives this file its processor flags.
#include "op/kernels_loops.h"

namespace osc::op {

constinit const KernelTable avx2_table = make_table();

}  // namespace osc::op
