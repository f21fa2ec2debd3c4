#!/bin/sh
# Builds the release preset and runs its tests:
#   sh tests/run.sh [--full] [CTEST ARGUMENT...]
# --full also runs the long variants (OSC_TEST_FULL=1); other arguments go to ctest (-L quick, -R name). Ends with ctest's
# summary and its exit code; a selection without tests is a failure.
set -eu
cd "$(dirname "$0")/.."
if [ "${1-}" = --full ]; then
    OSC_TEST_FULL=1
    export OSC_TEST_FULL
    shift
fi
sh cmake/install-packages.sh test
configure=-DOSC_WARNINGS_ARE_ERRORS=ON
# Only --full runs the benchmarks' programs for Open MPI.
[ -n "${OSC_TEST_FULL-}" ] || configure="$configure -DOSC_BENCHMARK_OPEN_MPI=OFF"
OSC_CONFIGURE=$configure sh cmake/build-preset.sh release
if [ -n "${OSC_TEST_FULL-}" ]; then
    echo "tests: all tests, in their long variants"
else
    echo "tests: the short variants; sh tests/run.sh --full runs everything"
fi
# PROCESSORS of an MPI test is its number of ranks, two at most. Ranks wait for half of their time, so there are two tests
# for each two cores.
exec ctest --test-dir build/release --no-tests=error --output-on-failure -j "$(($(nproc) * 2))" "$@"
