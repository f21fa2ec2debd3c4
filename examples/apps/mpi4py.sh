#!/bin/sh
# Builds mpi4py for MPICH and runs its RMA tests (test_win, test_rma, test_rma_nb) and examples/histogram.py by the host alone
# and with libosc. A run is right if the job ends with status 0.
#
# usage: sh examples/apps/mpi4py.sh [--library FILE] [--ranks N] [--rounds N] [--build DIR] TREE
#   TREE            a clone of https://github.com/mpi4py/mpi4py with tag 3.1.6 checked out
#   --library FILE  libosc.so (default: the release build's)
#   --ranks N       processes (default 2)
#   --rounds N      runs of each kind (default 1)
#   --build DIR     keeps the build there, and uses one that is there
#
# Needs the packages python3-dev, python3-numpy and cython3. Exit status: 0 if all runs with libosc are right that are right by
# the host, 1 if one is not or the build fails, 2 for wrong arguments, 77 without TREE.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=1
limit=300
. "$folder/common.sh"
source_tree test/runtests.py "https://github.com/mpi4py/mpi4py, tag 3.1.6"
compiler=$(command -v mpicc.mpich || command -v mpicc)
python=/usr/bin/python3 # the one of the packages
if [ ! -e "$build/built" ]; then
    cp -R "$tree/." "$build"
    if ! (cd "$build" && CFLAGS=-O1 "$python" setup.py build --mpicc="$compiler" && touch built) >"$build/log" 2>&1; then
        tail -20 "$build/log" >&2
        exit 1
    fi
fi
PYTHONPATH=$(echo "$build"/build/lib.*)
export PYTHONPATH
printf '%-16s %16s %16s\n' "program" "host" "libosc"
for program in test_win test_rma_nb test_rma histogram; do
    case $program in
        histogram) set -- "$folder/../histogram.py" ;;
        *) set -- "$build/test/runtests.py" --no-builddir -i "^$program\$" ;;
    esac
    host=0 libosc=0 round=0
    rm -f "$work"/times.*
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        ! launch host got "$python" "$@" || host=$((host + 1))
        if launch libosc got "$python" "$@"; then
            libosc=$((libosc + 1))
        elif [ "$host" = "$round" ]; then
            report "$program is right by the host, but not with libosc"
        fi
    done
    printf '%-16s %16s %16s\n' "$program" "$(tally host "$host")" "$(tally libosc "$libosc")"
done
echo "$ranks processes"
exit "$failed"
