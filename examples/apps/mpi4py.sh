#!/bin/sh
# Builds mpi4py for MPICH and runs its RMA tests (test_win, test_rma, test_rma_nb) and examples/histogram.py by the host alone
# and with libosc. A run is right if the job ends with status 0.
#
# usage: sh examples/apps/mpi4py.sh [OPTION]... TREE
#   TREE            a clone of https://github.com/mpi4py/mpi4py with tag 3.1.6 checked out
#
# Needs the packages python3-dev, python3-numpy and cython3.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=1
limit=300
. "$folder/common.sh"
source_tree test/runtests.py "https://github.com/mpi4py/mpi4py, tag 3.1.6"
python=/usr/bin/python3 # the one of the packages

build_mpi4py() {
    cp -R "$tree/." .
    CFLAGS=-O1 "$python" setup.py build --mpicc="$(mpi_compiler mpicc)"
}
build_once "$build" build_mpi4py
PYTHONPATH=$(echo "$build"/build/lib.*)
export PYTHONPATH

passes() {
    case $program in
        histogram) launch "$1" got "$python" "$folder/../histogram.py" ;;
        *) launch "$1" got "$python" "$build/test/runtests.py" --no-builddir -i "^$program\$" ;;
    esac
}
for program in test_win test_rma_nb test_rma histogram; do
    compare "$program"
done
conclude
