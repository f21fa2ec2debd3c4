#!/bin/sh
# Builds Fortran programs with coarrays over OpenCoarrays (Debian's package for MPICH), runs them by the host alone and with
# libosc, and prints the times side by side. Each program checks its own answer: coarrays/heat.f90 puts to neighbours,
# coarrays/claims.f90 atomic updates, coarrays/gets.f90 gets from random places. For the package's own programs run
# tests/conformance/opencoarrays.py.
#
# usage: sh examples/apps/coarrays.sh [--library FILE] [--ranks N] [--rounds N] [--build DIR] [heat|claims|gets]...
#   --library FILE  libosc.so (default: the release build's)
#   --ranks N       images (default 2)
#   --rounds N      runs of each kind, in turn; the table has their medians (default 3)
#   --build DIR     keeps the programs there
#
# As root it installs the packages if they are missing. Exit status: 0 if all results with libosc are right, 1 if one is
# wrong, 2 for wrong arguments, 77 if there is no OpenCoarrays for MPICH and none can be installed.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=3
. "$folder/common.sh"
programs=${operands:-heat claims gets}
for program in $programs; do
    [ -f "$folder/coarrays/$program.f90" ] || usage
done
install_packages gfortran libcoarrays-mpich-dev
compiler=$(command -v mpifort.mpich || command -v mpifort)
for program in $programs; do
    if ! (cd "$work" && "$compiler" -O2 -fcoarray=lib "$folder/coarrays/$program.f90" -lcaf_mpich -o "$build/$program") \
        >"$build/log" 2>&1; then
        cat "$build/log" >&2
        skip "no coarray program can be built over MPICH here"
    fi
done

printf '%-10s %14s %14s %10s\n' "program" "host" "libosc" "ratio"
for program in $programs; do
    rm -f "$work"/times.*
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        for variant in host libosc; do
            if launch "$variant" got "$build/$program" && grep -q 'verified=yes' "$work/got"; then
                sed -n 's/.*seconds=\([0-9.]*\).*/\1/p' "$work/got" >>"$work/times.$variant"
            elif [ "$variant" = libosc ]; then
                report "$program with libosc is wrong"
            fi
        done
    done
    host=$(result host)
    libosc=$(result libosc)
    printf '%-10s %14s %14s %10s\n' "$program" "$host" "$libosc" "$(ratio "$host" "$libosc")"
done
echo "$ranks images; seconds, medians of $rounds; wrong, late: a run failed, or did not end in time"
echo "ratio: libosc to the host"
exit "$failed"
