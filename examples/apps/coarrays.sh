#!/bin/sh
# Builds Fortran programs with coarrays over OpenCoarrays (Debian's package for MPICH), runs them by the host alone and with
# libosc, and prints the times side by side. Each program checks its own answer: coarrays/heat.f90 puts to neighbours,
# coarrays/claims.f90 atomic updates, coarrays/gets.f90 gets from random places. For the package's own programs run
# tests/conformance/opencoarrays.py.
#
# usage: sh examples/apps/coarrays.sh [OPTION]... [heat|claims|gets]...
#
# As root it installs the packages gfortran and libcoarrays-mpich-dev if they are missing.
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
compiler=$(mpi_compiler mpifort)
for program in $programs; do
    if ! (cd "$work" && "$compiler" -O2 -fcoarray=lib "$folder/coarrays/$program.f90" -lcaf_mpich -o "$build/$program") \
        >"$build/log" 2>&1; then
        cat "$build/log" >&2
        skip "no coarray program can be built over MPICH here"
    fi
done

passes() {
    launch "$1" got "$build/$program" && grep -q 'verified=yes' "$output"
}
seconds_of() {
    sed -n 's/.*seconds=\([0-9.]*\).*/\1/p' "$1"
}
for program in $programs; do
    compare_times "$program"
done
conclude_times "a program"
