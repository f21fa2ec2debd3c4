#!/bin/sh
# Makes the Debian package and installs it by apt in a clean Debian, for each release:
#   sh tests/packages/deb.sh [SUITE...]     (default: bookworm trixie)
# There `osc_info --check` finds no problem, alone and in a job of MPICH and of Open MPI, and the demo's program has one answer
# with and without libosc, over both, preloaded and linked. Purging the package leaves the files of before.
# A package runs on the release that it was built on and on newer ones. OSC_CHROOTS is the folder of the chroots and of the
# downloaded packages (default: build/hosts). Needs root and a registry of packages; ends with 77 where it cannot make a chroot.
# OSC_CONFIGURE has options for CMake.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=${OSC_CHROOTS:-$source/build/hosts}
configure=${OSC_CONFIGURE-}
unset OSC_CHROOTS OSC_CONFIGURE LD_PRELOAD
. "$source/tests/hosts/chroot.sh"
can_make_roots packages.deb
[ $# -gt 0 ] || set -- bookworm trixie
root=
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

cd "$source"
build=build/deb
# shellcheck disable=SC2086 # a list of words on purpose
cmake --preset release -B $build -DCMAKE_INSTALL_PREFIX=/usr -DOSC_BUILD_TESTS=OFF -DOSC_BUILD_BENCHMARKS=OFF $configure >/dev/null
cmake --build $build -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" >/dev/null
(cd $build && cpack -G DEB >package.log 2>&1) || { cat $build/package.log && exit 1; }
package=$(ls -t $build/libosc_*.deb | head -n 1)
dpkg-deb --field "$package" Package Version Depends Recommends

for suite; do
    make_root "$suite" "$folder/$suite.clean"
    root=$folder/$suite.deb.$$
    cp -a "$folder/$suite.clean" "$root"
    cp "$package" "$root/libosc.deb"
    # shellcheck disable=SC2016 # the inner shell expands them
    inside "$root" sh -eu -c '
        export DEBIAN_FRONTEND=noninteractive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HOME=/root
        apt() {
            apt-get -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log && exit 1; }
        }
        # run WANTED COMMAND...: the checksum that the program prints, with or without a line of libosc
        run() {
            wanted=$1
            shift
            timeout -k 5 60 env OSC_VERBOSE=1 OSC_FALLBACK=error "$@" >/tmp/out 2>&1 || { cat /tmp/out && exit 1; }
            grep -q "verified=yes" /tmp/out || { cat /tmp/out && exit 1; }
            said=$(sed -n "s/.*\(libosc: rank 0: libosc .* over .*\): .* ranks.*/\1/p" /tmp/out)
            case $wanted,$said in libosc,?* | host,) ;; *) cat /tmp/out && exit 1 ;; esac
            grep -o "checksum=[0-9a-f]*" /tmp/out >/tmp/checksum
            cat /tmp/checksum >>/tmp/checksums
            echo "$(cat /tmp/checksum) ${said:-the host alone}"
        }
        # check ABI [LAUNCHER...]: the health check finds no problem, a host of this ABI, and in a job the memory of the ranks
        check() {
            abi=$1
            shift
            timeout -k 5 60 "$@" osc_info --check >/tmp/check 2>&1 || { echo "$* osc_info --check: $?" && cat /tmp/check && exit 1; }
            for line in "ABI of $abi," ${1:+"ranks 0-1 share memory"}; do
                grep -q "$line" /tmp/check || { cat /tmp/check && exit 1; }
            done
            echo "osc_info --check: exit status 0, $(grep -c "^  ok" /tmp/check) times ok, ABI of $abi${1:+" by $*"}"
        }
        # The files of the system, without those that apt keeps for itself.
        files() {
            find / -xdev \( -path /osc -o -path /tmp -o -path /var/log -o -path /var/cache -o -path /var/lib/apt \) -prune -o -print | sort
        }
        . /etc/os-release
        echo "== $PRETTY_NAME"
        apt update
        apt satisfy "$(dpkg-deb --field libosc.deb Depends)"
        files >/tmp/before
        apt install ./libosc.deb
        osc_info --version
        echo "$(dpkg --listfiles libosc | grep -c /libosc) names of libraries"
        apt purge libosc
        files | diff /tmp/before - || { echo "purged, it leaves other files" && exit 1; }
        apt install ./libosc.deb mpich
        check MPICH
        apt install openmpi-bin
        apt purge mpich "libmpich12*"
        check "Open MPI"
        apt install gcc libc6-dev mpich libmpich-dev libopenmpi-dev pkg-config
        for host in mpich openmpi; do
            launcher="mpiexec.$host -n 2"
            [ $host = mpich ] || launcher="$launcher --oversubscribe"
            abi=MPICH
            [ $host = mpich ] || abi="Open MPI"
            check "$abi" $launcher
            # Open MPI 4.1.4 itself crashes in MPI_Compare_and_swap with its component osc/rdma.
            case $($launcher --version) in *") 4."*) launcher="$launcher --mca osc ^rdma" ;; esac
            mpicc.$host -O1 /osc/examples/histogram.c -o /tmp/histogram
            run host $launcher /tmp/histogram
            run libosc oscrun $launcher /tmp/histogram
            mpicc.$host -O1 /osc/examples/histogram.c $(pkg-config --libs osc) -o /tmp/linked
            run libosc $launcher /tmp/linked
        done
        [ "$(sort -u /tmp/checksums | wc -l)" = 1 ] || { echo "the checksums differ" && exit 1; }
        apt remove libosc
        left=$(find / -xdev \( -path /osc -o -path /tmp -o -path /var -o -path /libosc.deb \) -prune -o \( -name "*libosc*" -o -path "*/doc/osc*" \) -print)
        [ -z "$left" ] || { echo "removed, it leaves $left" && exit 1; }
    ' inside
    rm -rf "$root"
done
echo "the package works on $*"
