#!/bin/sh
# Builds OSHMPI, OpenSHMEM over MPI-3 RMA, and runs its tests by the host alone and with libosc: once with windows by create and
# allocate (one lock_all epoch; put, get, accumulates and flushes), once with one dynamic window. Atomics are accumulates, not
# active messages. A run is right if it ends with status 0 and prints "Passed", which the tests do after they have compared
# their data; with libosc, libosc must have served the operations.
#
# usage: sh examples/apps/oshmpi.sh [OPTION]... TREE [TEST]...
#   TREE            a clone of https://github.com/pmodels/oshmpi with its submodule OpenPA
#   TEST            a part of the names of the tests to run, as int_amo (default: all)
#
# Needs autoconf, automake, libtool and perl.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=1
. "$folder/common.sh"
source_tree src/include/oshmpi_impl.h https://github.com/pmodels/oshmpi
if [ ! -e "$tree/src/openpa/configure.ac" ]; then
    echo "$name: no src/openpa/configure.ac in $tree: fetch the submodule (git submodule update --init)" >&2
    exit 2
fi
export OSC_VERBOSE=counters

prepare_source() {
    cp -R "$tree/." .
    bash autogen.sh
}

# build_kind OPTION...: the library, configured with the options, and its tests, in the current folder.
build_kind() {
    ../source/configure --prefix="$PWD/installed" CC="$(mpi_compiler mpicc)" --disable-cxx --disable-shared \
        --enable-amo=direct "$@"
    make_all install
    make_all -C tests check TESTS=
}
build_once "$build/source" prepare_source
build_once "$build/create" build_kind
build_once "$build/dynamic" build_kind --enable-win-type=dynamic_win

passes() {
    launch "$1" got "$build/$kind/tests/$test" && grep -q '^Passed' "$output" && { [ "$1" = host ] || served MPI_Win_lock_all; }
}
for kind in create dynamic; do
    for test in $(make_variable "$build/create/tests" TESTS); do
        compare "$kind, $test"
    done
done
conclude
