#!/bin/sh
# Builds the RMA programs of the Parallel Research Kernels and runs them by the host alone and with libosc: stencil (puts
# between fences), p2p (a pipeline of puts with post, start, complete, wait) and transpose (puts in a lock_all epoch with flush,
# between fences, and under a lock each). Each program validates its own answer.
#
# usage: sh examples/apps/prk.sh [OPTION]... TREE
#   TREE            a clone of https://github.com/ParRes/Kernels
#
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=3
. "$folder/common.sh"
source_tree MPIRMA/Stencil/stencil.c https://github.com/ParRes/Kernels

build_kernels() {
    for program in Stencil/stencil Synch_p2p/p2p Transpose/transpose; do
        "$(mpi_compiler mpicc)" -w -O2 -std=gnu11 -I"$tree/include" -DVERBOSE=0 -DRESTRICT_KEYWORD=0 -DSTAR=1 -DDOUBLE=1 \
            -DRADIUS=2 -DLOOPGEN=0 "$tree/MPIRMA/$program.c" "$tree/common/MPI_bail_out.c" "$tree/common/wtime.c" -lm \
            -o "$(basename "$program")"
    done
}
build_once "$build" build_kernels

passes() {
    # shellcheck disable=SC2086 # a list of words on purpose
    launch "$1" got "$build/$program" $arguments && grep -q 'Solution validates' "$output"
}
seconds_of() {
    sed -n 's/.*[Aa]vg time (s): *\([0-9.]*\).*/\1/p' "$1"
}
while read -r program arguments; do
    compare_times "$program $arguments"
done <<PROGRAMS
stencil 20 200
p2p 10 200 100
transpose 20 200 32 0
PROGRAMS
conclude_times "an iteration"
