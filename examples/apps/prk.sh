#!/bin/sh
# Builds the RMA programs of the Parallel Research Kernels and runs them by the host alone and with libosc: stencil (puts
# between fences), p2p (a pipeline of puts with post, start, complete, wait) and transpose (puts in a lock_all epoch with flush,
# between fences, and under a lock each). Each program validates its own answer.
#
# usage: sh examples/apps/prk.sh [--library FILE] [--ranks N] [--rounds N] [--build DIR] TREE
#   TREE            a clone of https://github.com/ParRes/Kernels
#   --library FILE  libosc.so (default: the release build's)
#   --ranks N       processes (default 2)
#   --rounds N      runs of each kind, in turn; the table has their medians (default 3)
#   --build DIR     keeps the programs there, and uses those that are there
#
# Exit status: 0 if all results with libosc are right that are right by the host, 1 if one is not or a build fails, 2 for wrong
# arguments, 77 without TREE.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=3
. "$folder/common.sh"
source_tree MPIRMA/Stencil/stencil.c https://github.com/ParRes/Kernels
compiler=$(command -v mpicc.mpich || command -v mpicc)
for program in Stencil/stencil Synch_p2p/p2p Transpose/transpose; do
    to=$build/$(basename "$program")
    [ -x "$to" ] || "$compiler" -w -O2 -std=gnu11 -I"$tree/include" -DVERBOSE=0 -DRESTRICT_KEYWORD=0 -DSTAR=1 -DDOUBLE=1 \
        -DRADIUS=2 -DLOOPGEN=0 "$tree/MPIRMA/$program.c" "$tree/common/MPI_bail_out.c" "$tree/common/wtime.c" -lm -o "$to"
done

printf '%-34s %14s %14s %10s\n' "program" "host" "libosc" "ratio"
while read -r program arguments; do
    rm -f "$work"/times.*
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        for variant in host libosc; do
            # shellcheck disable=SC2086 # a list of words on purpose
            if launch "$variant" got "$build/$program" $arguments && grep -q 'Solution validates' "$work/got"; then
                sed -n 's/.*[Aa]vg time (s): *\([0-9.]*\).*/\1/p' "$work/got" >>"$work/times.$variant"
            elif [ "$variant" = libosc ] && [ "$(ratio "$(result host)" 1)" != - ]; then
                report "$program $arguments with libosc is wrong"
            fi
        done
    done
    host=$(result host)
    libosc=$(result libosc)
    printf '%-34s %14s %14s %10s\n' "$program $arguments" "$host" "$libosc" "$(ratio "$host" "$libosc")"
done <<PROGRAMS
stencil 20 200
p2p 10 200 100
transpose 20 200 32 0
PROGRAMS
echo "$ranks processes; seconds of an iteration, medians of $rounds; wrong, late: a run failed, or did not end in time"
echo "ratio: libosc to the host"
exit "$failed"
