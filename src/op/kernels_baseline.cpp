// The kernels compiled for the processor that the whole library is compiled for.
#include "op/kernels_loops.h"

namespace osc::op {

constinit const KernelTable baseline_table = make_table();

}  // namespace osc::op
