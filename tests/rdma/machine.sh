#!/bin/sh
# Boots an emulated machine with an RDMA device and runs a script there:
#   sh tests/rdma/machine.sh FOLDER SCRIPT
# FOLDER arrives as /payload; the machine runs SCRIPT, a path in it, by sh as root, in /payload. What the script prints comes
# to stdout as it is printed, and its exit code becomes this one's.
# The machine is qemu without KVM, so it runs anywhere and its times mean nothing. Its system is in memory: the files of
# packages that this machine has (MPICH, libfabric, perftest and what they depend on), and the kernel of the Debian release.
# Its device rxe0 is soft-RoCE (boot.sh), so that libfabric's verbs provider registers memory and connects queue pairs.
#   OSC_RDMA_MACHINE   folder of the machine's kernel (default: build/rdma); a second run uses what it finds there
#   OSC_RDMA_SECONDS   bounds a run, default 900; then the exit code is 124
#   OSC_XPMEM_SOURCE   a tree of github.com/openucx/xpmem, whose module and library the machine then has
# The first run downloads the kernel, 70 MB, and installs missing packages, which needs root. Ends with 77 where this machine
# cannot have an emulator.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
payload=${1:?"usage: sh tests/rdma/machine.sh FOLDER SCRIPT"}
script=${2:?"usage: sh tests/rdma/machine.sh FOLDER SCRIPT"}
folder=${OSC_RDMA_MACHINE:-$source/build/rdma}
seconds=${OSC_RDMA_SECONDS:-900}
processors=4
# What cmake/install-packages.sh installs, but the emulator.
packages="mpich libfabric1 libfabric-bin ibverbs-providers perftest strace python3 libstdc++6 iproute2"
packages="$packages kmod mount hostname mawk procps"
! dpkg-query -W openmpi-bin >/dev/null 2>&1 || packages="$packages openmpi-bin"
modules="veth rdma_rxe ib_uverbs rdma_ucm crypto-crc32" # what boot.sh loads, and the sums of rdma_rxe

skip() {
    echo "rdma: SKIPPED: $1" >&2
    exit 77
}
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || skip "the emulated machine needs Debian on amd64"
sh "$source/cmake/install-packages.sh" rdma || skip "no emulator: cmake/install-packages.sh rdma failed"

download_kernel() {
    package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | head -n 1)
    [ -n "$package" ] && (cd "$folder" && apt-get download "$package" >/dev/null 2>&1)
}

# The kernel, and those of its modules that the machine loads.
make_kernel() {
    rm -rf "$folder/all" "$folder/system" "$folder"/*.deb
    mkdir -p "$folder/all" "$folder/system/usr/lib"
    ln -s usr/lib "$folder/system/lib" # the name that depmod takes
    echo "rdma: getting the machine's kernel; this happens once" >&2
    # A fresh machine has no package lists yet, an old one stale ones.
    download_kernel || { apt-get update >/dev/null 2>&1 && download_kernel; } || skip "no kernel: apt-get download failed"
    dpkg-deb -x "$folder"/linux-image-*.deb "$folder/all"
    set -- "$folder"/all/lib/modules/*
    version=${1##*/}
    depmod -b "$folder/all" "$version"
    # shellcheck disable=SC2086 # a list of words on purpose
    modprobe -d "$folder/all" -S "$version" -a --show-depends $modules | awk -v all="$folder/all/" \
        '$1 == "insmod" { print substr($2, length(all) + 1) }' | sort -u >"$folder/files"
    (cd "$folder/all" && xargs cp --parents -t "$folder/system" <"$folder/files")
    cp "$folder/all/lib/modules/$version"/modules.[bo]* "$folder/system/lib/modules/$version"
    depmod -b "$folder/system" "$version"
    cp "$folder"/all/boot/vmlinuz-* "$folder/vmlinuz"
    rm -rf "$folder/all" "$folder"/*.deb
    mv "$folder/vmlinuz" "$folder/kernel"
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
payload=$(cd "$payload" && pwd)
[ -f "$folder/kernel" ] || make_kernel
if [ -n "${OSC_XPMEM_SOURCE:-}" ] && sh "$here/build_xpmem.sh" "$OSC_XPMEM_SOURCE" "$folder"; then
    mkdir -p "$payload/build"
    cp -r "$folder/xpmem" "$payload/build/"
fi

# The names of the files of the machine's system, with the folders before what is in them: of Debian's essential packages,
# $packages, and all that these depend on.
list_system() {
    # shellcheck disable=SC2016,SC2046,SC2086 # the format is dpkg's; lists of words on purpose
    dpkg -L $(apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances $packages $(dpkg-query -W -f '${Package} ${Essential}\n' | sed -n 's/ yes$//p') |
        grep '^[a-z]' | xargs dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/ installed$//p') |
        grep -E '^/(bin|sbin|lib|lib64|usr|etc)' | grep -vE '^/usr/(include|share/(doc|man|locale|info))/|[.]a$|[.]pyc$' |
        sed -E 's,^/(bin|sbin|lib|lib64)/,/usr/\1/,'
    find /usr/bin /usr/lib/x86_64-linux-gnu -maxdepth 1 -lname '/etc/alternatives/*'
    find /etc/alternatives
    printf '%s\n' /usr/lib64 /etc/passwd /etc/group /etc/ld.so.cache
}

run=$(mktemp -d -p "$folder")
trap 'rm -rf "$run"' EXIT
emulator=
trap '[ -z "$emulator" ] || kill "$emulator"; exit 130' INT
trap '[ -z "$emulator" ] || kill "$emulator"; exit 143' TERM HUP
# What the kernel unpacks as its first file system: archives one after the other.
archive() {
    cpio --quiet --create --dereference --format newc --owner 0:0
}
mkdir "$run/root"
cd "$run/root"
mkdir dev proc root run sys tmp
install -m 755 "$here/boot.sh" init
echo "$script" >script
ln -s "$payload" payload
{
    list_system | LC_ALL=C sort -u | while read -r file; do
        [ ! -e "$file" ] || echo "${file#/}"
    done | (cd / && cpio --quiet --create --format newc --owner 0:0)
    (cd "$folder/system" && find usr | archive)
    find -L . | archive
} >"$run/initrd"
cd "$source"
: >"$run/code"

# Three serial lines: the kernel's console, the script's output, its exit code. Nothing that the machine writes stays.
status=0
timeout -k 10 "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp "$processors" -m 4096 -display none \
    -monitor none -no-reboot -nic none -kernel "$folder/kernel" -initrd "$run/initrd" \
    -append "console=ttyS0 panic=5 mitigations=off no_timer_check quiet" \
    -serial "file:$run/console" -serial stdio -serial "file:$run/code" </dev/null &
emulator=$!
wait "$emulator" || status=$?
code=$(tr -cd '0-9' <"$run/code")
cp "$run/console" "$folder/console"
if [ -n "$code" ]; then
    exit "$code"
fi
echo "rdma: the machine ended without a result (qemu: $status, limit $seconds s); its console ends:" >&2
tail -n 15 "$run/console" >&2
[ "$status" -eq 124 ] && exit 124
exit 1
