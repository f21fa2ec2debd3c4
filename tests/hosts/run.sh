#!/bin/sh
# Builds libosc and runs the short level of its tests on a newer Debian release, in a chroot:
#   sh tests/hosts/run.sh trixie|forky [HOST] [CTEST ARGUMENT...]
# over that release's MPICH, or over another HOST of over.sh.
# OSC_CHROOTS is the folder of the chroots and of the downloaded packages (default: build/hosts); a second run uses what it
# finds there. Needs root; ends with 77 where it cannot make a chroot (chroot.sh).
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
suite=${1:?"usage: sh tests/hosts/run.sh trixie|forky [HOST] [CTEST ARGUMENT...]"}
shift
host=
case ${1:--} in
-*) ;;
*) host=$1 && shift ;;
esac
folder=${OSC_CHROOTS:-$source/build/hosts}
root=$folder/$suite
# The short variants of the tests, also where the long ones run outside. libosc reports OSC_* variables that it does not
# know, so no test may see this script's own. The chroot has its own compiler.
unset OSC_TEST_FULL OSC_CHROOTS CC CXX FC CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER

. "$source/tests/hosts/chroot.sh"
can_make_roots hosts
make_root "$suite" "$root"
inside "$root" sh /osc/cmake/install-packages.sh test openmpi
# Without LTO and with several sources in each compilation: one by one and with LTO the build takes a multiple of the time
# of the tests. What is tested here is another compiler's diagnostics and another host, not its optimiser.
inside "$root" sh -eu -c '
    cmake -S /osc -B /build/osc -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOSC_UNITY=ON -DOSC_BUILD_BENCHMARKS=OFF
    host=$1
    shift
    if [ -n "$host" ]; then
        cmake --build /build/osc -j "$(nproc)" --target osc
        exec sh /osc/tests/hosts/over.sh "$host" /build/osc "$@"
    fi
    chosen=$(python3 /osc/tests/level.py /build/osc)
    cmake --build /build/osc -j "$(nproc)" --target $(printf "%s\n" "$chosen" | sed -n 1p)
    tests=$(printf "%s\n" "$chosen" | sed -n 2p)
    # Namespaces of several hosts are the machine'"'"'s own affair and are tested outside.
    exec ctest --test-dir /build/osc --no-tests=error --output-on-failure -j "$(nproc)" -LE multihost -R "$tests" "$@"' \
    hosts "$host" "$@"
