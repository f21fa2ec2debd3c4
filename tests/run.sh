#!/bin/sh
# Builds the release preset and runs all tests. --full also runs the long variants (OSC_TEST_FULL=1). Ends with ctest's
# summary and its exit code.
set -eu
cd "$(dirname "$0")/.."
for argument in "$@"; do
    case $argument in
        --full) OSC_TEST_FULL=1; export OSC_TEST_FULL ;;
        *) echo "usage: sh tests/run.sh [--full]" >&2; exit 2 ;;
    esac
done
if [ -f cmake/install-packages.sh ]; then
    sh cmake/install-packages.sh test
fi
jobs=$(nproc)
cmake --preset release
cmake --build --preset release -j "$jobs"
# Each MPI test counts as the cores that it keeps busy (PROCESSORS), so this does not start more than the machine takes.
exec ctest --test-dir build/release --output-on-failure -j "$jobs"
