// The kernels compiled for AVX-512.
// Build: -O3 -falign-loops=64 -ffp-contract=off --param=max-completely-peel-times=4 on:x86_64
// Build: -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
#include "op/kernels_loops.h"

namespace osc::op {

constinit const KernelTable avx512_table = make_table<Isa::Avx512>();

}  // namespace osc::op
