#!/bin/sh
# Installs the Debian packages that a part of the project needs, and only those that are missing:
#   sh cmake/install-packages.sh build|test|gate|full|bench|openmpi|rdma|xpmem|apps|evidence...
# The one list of packages; the demo and the tests both start from it.
set -eu

build="g++ cmake make mpich libmpich-dev libfabric-dev nlohmann-json3-dev"
test_only="libgtest-dev gfortran iproute2 python3"
openmpi="openmpi-bin libopenmpi-dev"
gate_only="libcoarrays-mpich-dev ninja-build valgrind clang clang-format clang-tidy cppcheck g++-aarch64-linux-gnu spin python3-matplotlib python3-venv man-db $openmpi"
# The emulator of tests/rdma, and what runs in it.
rdma="qemu-system-x86 cpio mpich libfabric1 libfabric-bin ibverbs-providers perftest strace python3 libstdc++6 iproute2"
rdma="$rdma kmod mount hostname mawk procps"
xpmem="autoconf automake libtool make gcc-12" # builds a module for the emulator's kernel
bench_only="$openmpi valgrind python3 python3-matplotlib iproute2"
evidence="python3-clang chromium-headless-shell" # finds the sites of mutants, tests/evidence; shows the pages of tests/report
apps="mpich libmpich-dev gfortran nwchem-mpich libcoarrays-mpich-dev bagel liblapack-dev" # examples/apps

wanted=""
for group in "$@"; do
    case "$group" in
        build) wanted="$wanted $build" ;;
        test) wanted="$wanted $build $test_only" ;;
        gate) wanted="$wanted $build $test_only $gate_only $rdma" ;;
        full) wanted="$wanted $build $test_only $gate_only $rdma debootstrap dpkg-dev slurm-wlm munge" ;;
        openmpi) wanted="$wanted $openmpi" ;;
        rdma) wanted="$wanted $rdma" ;;
        xpmem) wanted="$wanted $xpmem" ;;
        bench) wanted="$wanted $build $bench_only" ;;
        apps) wanted="$wanted $apps" ;;
        evidence) wanted="$wanted $build $test_only $gate_only $evidence" ;;
        *)
            echo "install-packages: no group '$group'; there are build, test, gate, full, bench, openmpi, rdma, xpmem, apps and evidence" >&2
            exit 2
            ;;
    esac
done

missing=""
for package in $wanted; do
    case "$missing " in *" $package "*) continue ;; esac
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "install-packages: not root; please install:$missing" >&2
    exit 1
fi

echo "installing:$missing"
install() {
    # shellcheck disable=SC2086 -- a list of words on purpose
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >/dev/null
}
# A fresh machine has no package lists yet, an old one stale ones: refresh them once, then insist.
if ! install 2>/dev/null; then
    apt-get update >/dev/null
    install
fi
