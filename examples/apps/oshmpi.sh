#!/bin/sh
# Builds OSHMPI, OpenSHMEM over MPI-3 RMA, and runs its tests by the host alone and with libosc: once with windows by create and
# allocate (one lock_all epoch; put, get, accumulates and flushes), once with one dynamic window. Atomics are accumulates, not
# active messages. A run is right if it ends with status 0 and prints "Passed", which the tests do after they have compared
# their data; with libosc, libosc must have served the operations.
#
# usage: sh examples/apps/oshmpi.sh [--library FILE] [--ranks N] [--rounds N] [--build DIR] TREE [TEST]...
#   TREE            a clone of https://github.com/pmodels/oshmpi with its submodule OpenPA
#   TEST            a part of the names of the tests to run, as int_amo (default: all)
#   --library FILE  libosc.so (default: the release build's)
#   --ranks N       processes (default 2)
#   --rounds N      runs of each test (default 1)
#   --build DIR     keeps the builds there, and uses those that are there
#
# Needs autoconf, automake, libtool and perl. Exit status: 0 if every test that is right by the host is right with libosc, 1 if
# one is not or a build fails, 2 for wrong arguments, 77 without TREE.
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
compiler=$(command -v mpicc.mpich || command -v mpicc)
export OSC_VERBOSE=counters

# build_kind KIND OPTION...: $build/KIND, configured with the options.
build_kind() {
    kind=$1
    shift
    [ ! -e "$build/$kind/built" ] || return 0
    mkdir -p "$build/$kind"
    if ! (cd "$build/$kind" && ../source/configure --prefix="$build/$kind/installed" CC="$compiler" --disable-cxx \
        --disable-shared --enable-amo=direct "$@" && make install && make -C tests check TESTS= &&
        touch built) >"$build/log" 2>&1; then
        tail -20 "$build/log" >&2
        exit 1
    fi
}
if [ ! -e "$build/source/configure" ]; then
    mkdir -p "$build/source"
    cp -R "$tree/." "$build/source"
    if ! (cd "$build/source" && bash autogen.sh) >"$build/log" 2>&1; then
        tail -20 "$build/log" >&2
        exit 1
    fi
fi
build_kind create
build_kind dynamic --enable-win-type=dynamic_win
# shellcheck disable=SC2016 # make's variable
tests=$(make -s -C "$build/create/tests" --eval 'names-of-tests: ; @echo $(TESTS)' names-of-tests)

# chosen TEST: whether the arguments ask for it.
chosen() {
    [ -n "$operands" ] || return 0
    for part in $operands; do
        case $1 in *"$part"*) return 0 ;; esac
    done
    return 1
}

# passes VARIANT KIND TEST: one run, and whether it is right.
passes() {
    launch "$1" got "$build/$2/tests/$3" && grep -q '^Passed' "$work/got" &&
        { [ "$1" = host ] || grep -q '^libosc: .*MPI_Win_lock_all' "$work/got"; }
}

right=0 number=0
printf '%-36s %16s %16s\n' "windows, test" "host" "libosc"
for kind in create dynamic; do
    for test in $tests; do
        chosen "$test" || continue
        number=$((number + 1))
        host=0 libosc=0 round=0
        rm -f "$work"/times.*
        while [ "$round" -lt "$rounds" ]; do
            round=$((round + 1))
            ! passes host "$kind" "$test" || host=$((host + 1))
            if passes libosc "$kind" "$test"; then
                libosc=$((libosc + 1))
            elif [ "$host" = "$round" ]; then
                report "$kind, $test is right by the host, but not with libosc"
            fi
        done
        [ "$libosc" -lt "$rounds" ] || right=$((right + 1))
        printf '%-36s %16s %16s\n' "$kind, $test" "$(tally host "$host")" "$(tally libosc "$libosc")"
    done
done
echo "$ranks processes; with libosc $right of $number tests are right"
[ "$number" -gt 0 ] || usage
exit "$failed"
