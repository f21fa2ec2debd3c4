#!/bin/sh
# Builds Global Arrays over ARMCI-MPI, without Fortran and C++, and runs its C tests by the host alone and with libosc: put, get,
# accumulate and their non-blocking forms on arrays of one to seven dimensions, patches, gather and scatter, mutexes, process
# groups, matrix products. Left out are tests that take minutes, that seed their data by the clock, or that only send messages.
# Each test compares its arrays with what they must contain. A run is right if it ends with status 0, prints the test's line of
# success and no line of a failure; with libosc, libosc must have served the operations.
#
# usage: sh examples/apps/ga.sh [OPTION]... TREE ARMCI [TEST]...
#   TREE            a clone of https://github.com/GlobalArrays/ga
#   ARMCI           a clone of https://github.com/pmodels/armci-mpi
#   TEST            a part of the names of the tests to run, as patch (default: all)
#
# Needs autoconf, automake and libtool.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=4
rounds=1
. "$folder/common.sh"
source_tree global/src/ga-papi.h https://github.com/GlobalArrays/ga
arrays=$tree
source_tree src/armci.h https://github.com/pmodels/armci-mpi
export OSC_VERBOSE=counters
tests="tiled_irreg_test getmem mtest normc matrixc ntestc nbtestc ntestfc patch_enumc testc testmult testmultrect
    gemmtest read_only ga-mpi simple_groups_commc"

build_armci() {
    cp -R "$tree/." .
    sh autogen.sh
    ./configure CC="$(mpi_compiler mpicc)" --disable-shared --prefix="$build/installed"
    make_all install
}

build_arrays() {
    cp -R "$arrays/." .
    autoreconf -vif
    ./configure MPICC="$(mpi_compiler mpicc)" MPICXX="$(mpi_compiler mpicxx)" --with-armci="$build/installed" --disable-f77 \
        --disable-cxx --without-blas --without-lapack --without-scalapack
    # shellcheck disable=SC2046 # a list of words on purpose
    make_all $(make_variable . BUILT_SOURCES)
    # shellcheck disable=SC2046,SC2086 # a list of words on purpose
    make_all $(printf 'global/testing/%s.x ' $tests)
}
build_once "$build/armci" build_armci
build_once "$build/arrays" build_arrays

passes() {
    launch "$1" got "$build/arrays/global/testing/$test.x" &&
        grep -q -E 'All tests successful|^Success|[Tt]est passed|test succeeded|^Sparse matrix tests complete|^Terminating' "$output" &&
        ! grep -q -i -E 'fail|not ok|mismatch|bogus|expected:|error:' "$output" && { [ "$1" = host ] || served MPI_; }
}
for test in $tests; do
    compare "$test"
done
conclude
