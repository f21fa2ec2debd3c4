// The kernels compiled for AVX2.
// Build: -O3 -falign-loops=64 -ffp-contract=off --param=max-completely-peel-times=4 -mavx2 -mf16c on:x86_64
#include "op/kernels_loops.h"

namespace osc::op {

constinit const KernelTable avx2_table = make_table<Isa::Avx2>();

}  // namespace osc::op
