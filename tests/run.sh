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
sh cmake/build-preset.sh release
if [ -n "${OSC_TEST_FULL-}" ]; then
    echo "tests: all tests, in their long variants"
else
    echo "tests: the short variants; sh tests/run.sh --full runs everything"
fi
# Each MPI test counts as the cores that it keeps busy (PROCESSORS), so this does not start more than the machine takes.
exec ctest --test-dir build/release --no-tests=error --output-on-failure -j "$(nproc)" "$@"
