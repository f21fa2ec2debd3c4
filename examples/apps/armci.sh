#!/bin/sh
# Builds ARMCI-MPI, the one-sided layer of Global Arrays and NWChem over MPI-3 RMA, and runs its tests by the host alone and
# with libosc. A run is right if the job ends with status 0. Tests that only measure are left out.
#
# usage: sh examples/apps/armci.sh [--library FILE] [--ranks N] [--rounds N] [--build DIR] TREE [TEST]...
#   TREE            a clone of https://github.com/pmodels/armci-mpi
#   TEST            a part of the names of the tests to run, as test_mutex (default: all)
#   --library FILE  libosc.so (default: the release build's)
#   --ranks N       processes (default 2)
#   --rounds N      runs of each test (default 1)
#   --build DIR     keeps the build there, and uses one that is there
#
# Needs autoconf, automake and libtool. Exit status: 0 if every test that is right by the host is right with libosc, 1 if one
# is not or the build fails, 2 for wrong arguments, 77 without TREE.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=1
. "$folder/common.sh"
source_tree src/armci.h https://github.com/pmodels/armci-mpi
compiler=$(command -v mpicc.mpich || command -v mpicc)
if [ ! -e "$build/built" ]; then
    cp -R "$tree/." "$build"
    if ! (cd "$build" && sh autogen.sh && ./configure CC="$compiler" --disable-shared && make &&
        make check TESTS= XFAIL_TESTS= && touch built) >"$build/log" 2>&1; then
        tail -20 "$build/log" >&2
        exit 1
    fi
fi
# shellcheck disable=SC2016 # make's variable
tests=$(make -s -C "$build" --eval 'names-of-tests: ; @echo $(TESTS)' names-of-tests |
    tr ' ' '\n' | grep -v -e '^benchmarks/' -e latency -e perf)

# chosen TEST: whether the arguments ask for it.
chosen() {
    [ -n "$operands" ] || return 0
    for part in $operands; do
        case $1 in *"$part"*) return 0 ;; esac
    done
    return 1
}

right=0 number=0
printf '%-44s %16s %16s\n' "test" "host" "libosc"
for test in $tests; do
    chosen "$test" || continue
    number=$((number + 1))
    host=0 libosc=0 round=0
    rm -f "$work"/times.*
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        ! launch host got "$build/$test" || host=$((host + 1))
        if launch libosc got "$build/$test"; then
            libosc=$((libosc + 1))
        elif [ "$host" = "$round" ]; then
            report "$test is right by the host, but not with libosc"
        fi
    done
    [ "$libosc" -lt "$rounds" ] || right=$((right + 1))
    printf '%-44s %16s %16s\n' "$test" "$(tally host "$host")" "$(tally libosc "$libosc")"
done
echo "$ranks processes; with libosc $right of $number tests are right"
[ "$number" -gt 0 ] || usage
exit "$failed"
