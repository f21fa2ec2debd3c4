#!/bin/sh
# Builds the tests and runs them, in one of three levels:
#   sh tests/run.sh                             the short level: proves that libosc works on this machine
#   sh tests/run.sh --gate [CTEST ARGUMENT...]  all tests in their short variants, sanitizers and other MPI libraries included
#   sh tests/run.sh --full [CTEST ARGUMENT...]  all tests in their long variants, newer Debian releases, the emulated RDMA
#                                               machine and applications included: hours
#   sh tests/run.sh AREA...                     of the short level and of the unit tests those of an area: data, sync, window,
#                                               net, check, trace, ... (an unknown word prints the list)
# Arguments for ctest select among a level's tests (-R name). Ends with ctest's summary and its exit code; a selection without
# tests is a failure. OSC_CONFIGURE holds further options for cmake.
set -eu
cd "$(dirname "$0")/.."
level=short
case "${1-}" in
    --gate | --full)
        level=${1#--}
        shift
        ;;
    -*)
        echo "usage: sh tests/run.sh [--gate [CTEST ARGUMENT...] | --full [CTEST ARGUMENT...] | AREA...]" >&2
        exit 2
        ;;
esac
configure=${OSC_CONFIGURE-}
unset OSC_CONFIGURE # libosc reports variables of its own that it does not know

# build [TARGET...]
build() {
    OSC_CONFIGURE=$configure sh cmake/build-preset.sh release "$@"
}

case $level in
    short)
        sh cmake/install-packages.sh test
        # After a change of one line the link-time optimisation of libosc.so would take longer than all else that is built.
        # The gate's warnings let an area and the gate share their objects.
        [ $# -eq 0 ] || configure="$configure -DOSC_LTO=OFF -DOSC_WARNINGS_ARE_ERRORS=ON"
        OSC_CONFIGURE=$configure OSC_ONLY_CONFIGURE=1 sh cmake/build-preset.sh release
        chosen=$(python3 tests/level.py build/release "$@")
        # shellcheck disable=SC2046 -- a list of words on purpose
        build $(printf '%s\n' "$chosen" | sed -n 1p)
        set -- -R "$(printf '%s\n' "$chosen" | sed -n 2p)"
        ;;
    gate)
        sh cmake/install-packages.sh gate
        configure="$configure -DOSC_WARNINGS_ARE_ERRORS=ON"
        build
        ;;
    full)
        sh cmake/install-packages.sh full
        OSC_TEST_FULL=1
        export OSC_TEST_FULL
        configure="$configure -DOSC_WARNINGS_ARE_ERRORS=ON"
        build
        ;;
esac
echo "tests: the $level level"
# PROCESSORS of an MPI test is its number of ranks, two at most. Ranks wait for half of their time, so there are two tests
# for each two cores.
exec ctest --test-dir build/release --no-tests=error --output-on-failure -j "$(($(nproc) * 2))" "$@"
