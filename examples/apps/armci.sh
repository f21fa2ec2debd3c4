#!/bin/sh
# Builds ARMCI-MPI, the one-sided layer of Global Arrays and NWChem over MPI-3 RMA, and runs its tests by the host alone and
# with libosc. A run is right if the job ends with status 0. Tests that only measure are left out.
#
# usage: sh examples/apps/armci.sh [OPTION]... TREE [TEST]...
#   TREE            a clone of https://github.com/pmodels/armci-mpi
#   TEST            a part of the names of the tests to run, as test_mutex (default: all)
#
# Needs autoconf, automake and libtool.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=1
. "$folder/common.sh"
source_tree src/armci.h https://github.com/pmodels/armci-mpi

build_armci() {
    cp -R "$tree/." .
    sh autogen.sh
    ./configure CC="$(mpi_compiler mpicc)" --disable-shared
    make_all
    make_all check TESTS= XFAIL_TESTS=
}
build_once "$build" build_armci

passes() {
    launch "$1" got "$build/$test"
}
for test in $(make_variable "$build" TESTS); do
    case $test in benchmarks/* | *latency* | *perf*) continue ;; esac
    compare "$test"
done
conclude
