#!/bin/sh
# README's install lines with clang: they build without a warning, and what they install runs.
#   sh clang.sh CLANG BUILD MPIEXEC PROGRAM...
# BUILD keeps the objects for the next run. PROGRAM, of another build, makes one-sided calls in two processes: on a node with
# the checker and the reports, and between nodes.
set -eu
clang=$1 build=$2 mpiexec=$3
shift 3
cd "$(dirname "$0")/../.."
CXX=$clang
CC=$(printf '%s\n' "$clang" | sed 's/clang++/clang/')
export CC CXX
cmake --preset release -B "$build" -DOSC_BUILD_TESTS=OFF -DOSC_BUILD_BENCHMARKS=OFF -DOSC_WARNINGS_ARE_ERRORS=ON
cmake --build "$build" -j 2
rm -rf "$build/installed"
cmake --install "$build" --prefix "$build/installed" >/dev/null
"$build/installed/bin/osc_info" --version
library=$(find "$build/installed" -name libosc.so)

for world in "OSC_CHECK=1 OSC_STATS=1" OSC_DEBUG=fake_nodes=2; do
    # shellcheck disable=SC2086 -- a list of words on purpose
    timeout -k 5 60 env $world OSC_FALLBACK=error "$mpiexec" -n 2 -genv MPIR_CVAR_POLLS_BEFORE_YIELD 1 \
        -genv LD_PRELOAD "$library" "$@"
done
