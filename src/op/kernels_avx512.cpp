// The kernels compiled for AVX-512; kernels.cmake gives this file its processor flags.
#include "op/kernels_loops.h"

namespace osc::op {

constinit const KernelTable avx512_table = make_table();

}  // namespace osc::op
