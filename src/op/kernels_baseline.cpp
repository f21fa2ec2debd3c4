// The kernels compiled for the processor that the whole library is compiled for.
// Build: -O3 -falign-loops=64 -ffp-contract=off --param=max-completely-peel-times=4
#include "op/kernels_loops.h"

namespace osc::op {

constinit const KernelTable baseline_table = make_table<Isa::Baseline>();

}  // namespace osc::op
