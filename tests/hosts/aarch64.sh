#!/bin/sh
# Builds libosc for aarch64 in a chroot of Debian 12, and runs unit tests by qemu's emulation of a process:
#   aarch64.sh [REGEX]    the tests of ctest that REGEX selects, ^unit[.] without one
# Everything lies in build/aarch64 and stays for the next run. Exit status 77: no chroot can be made here. The emulation orders memory
# as the machine below does, so it shows the code of aarch64, and no fault of its weaker order.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$source/build/aarch64
root=$folder/root
. "$source/tests/hosts/chroot.sh"
can_make_roots aarch64
make_root bookworm "$root"
inside "$root" sh -eu -c '
    if [ ! -f /installed ]; then
        dpkg --add-architecture arm64
        apt-get update >/dev/null
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++-aarch64-linux-gnu cmake make qemu-user-static mpich \
            libmpich12:arm64 libfabric-dev:arm64 libgtest-dev:arm64 nlohmann-json3-dev python3 >/dev/null
        # libmpich-dev:arm64 depends on a compiler that runs on arm64: take its headers and its wrapper only.
        cd /tmp
        apt-get download libmpich-dev:arm64 >/dev/null
        dpkg -x libmpich-dev_*_arm64.deb /
        touch /installed
    fi
    cd /osc
    cmake -S . -B /build -DCMAKE_BUILD_TYPE=Release -DOSC_LTO=OFF -DOSC_UNITY=ON -DOSC_BUILD_BENCHMARKS=OFF -DOSC_WARNINGS_ARE_ERRORS=ON \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CROSSCOMPILING_EMULATOR=/usr/bin/qemu-aarch64-static \
        -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu
    cmake --build /build -j 2 --target osc unit_tests
    ctest --test-dir /build --output-on-failure -j 2 -R "$1"
' aarch64 "${1:-^unit[.]}"
