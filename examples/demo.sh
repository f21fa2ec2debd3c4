#!/bin/sh
# One MPI program, one binary, run without and with libosc preloaded: the same answer, the times side by side, and what
# a target that computes costs. On a fresh Debian 12, as root: sh examples/demo.sh
# Installs what is missing first, and builds the library and the program in build/release, as tests/run.sh does.
set -eu
cd "$(dirname "$0")/.."

sh cmake/install-packages.sh build
echo "building ..."
configure=${OSC_CONFIGURE-}
unset OSC_CONFIGURE # libosc reports variables of its own that it does not know
# Without the tests, which need more packages.
if ! log=$(OSC_CONFIGURE="-DOSC_BUILD_TESTS=OFF -DOSC_BUILD_BENCHMARKS=OFF $configure" \
    sh cmake/build-preset.sh release osc histogram 2>&1); then
    printf '%s\n' "$log" | tail -40 >&2
    echo "demo: the build failed" >&2
    exit 1
fi

program=build/release/examples/histogram
library=$PWD/build/release/src/libosc.so
if [ ! -f "$library" ]; then
    echo "demo: the build left no libosc.so at build/release/src" >&2
    exit 1
fi
mpiexec=$(command -v mpiexec.mpich || command -v mpiexec)

# launch host|libosc ARGUMENTS: prints the program's line of results, or ends the demo.
launch() {
    which=$1
    shift
    if [ "$which" = libosc ]; then
        set -- -genv LD_PRELOAD "$library" -genv OSC_FALLBACK error -n 2 "$program" "$@"
    else
        set -- -n 2 "$program" "$@"
    fi
    if ! timeout 120 "$mpiexec" "$@"; then
        echo "demo: the program failed ($which)" >&2
        exit 1
    fi
}

# value LINE KEY: the value of KEY=... in a line.
value() {
    printf '%s\n' "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}

row() {
    printf '%-44s %20s %20s\n' "$1" "$2" "$3"
}

host=$(launch host)
ours=$(launch libosc)
host_busy=$(launch host --busy)
ours_busy=$(launch libosc --busy)

echo
echo "a histogram of $(value "$host" words) words over $(value "$host" ranks) ranks' windows; one unchanged binary"
echo
row "" "MPI alone" "with libosc.so"
row "checksum" "$(value "$host" checksum)" "$(value "$ours" checksum)"
row "equal to the sequential count" "$(value "$host" verified)" "$(value "$ours" verified)"
row "time, ms" "$(value "$host" ms)" "$(value "$ours" ms)"
row "fetch_and_op to a computing target, mean us" "$(value "$host_busy" mean_us)" "$(value "$ours_busy" mean_us)"
row "fetch_and_op to a computing target, worst us" "$(value "$host_busy" worst_us)" "$(value "$ours_busy" worst_us)"
echo

if [ "$(value "$host" checksum)" != "$(value "$ours" checksum)" ]; then
    echo "demo: the answers differ" >&2
    exit 1
fi
