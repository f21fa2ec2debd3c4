#!/bin/sh
# Boots an emulated machine with an RDMA device and runs a script there:
#   sh tests/rdma/machine.sh FOLDER SCRIPT
# FOLDER arrives as /payload; the machine runs SCRIPT, a path in it, by sh as root, in /payload. What the script prints comes
# to stdout as it is printed, and its exit code becomes this one's.
# The machine is qemu without KVM, so it runs anywhere and its times mean nothing. It has this machine's Debian release and
# the release's kernel, MPICH, libfabric and perftest. Its device rxe0 is soft-RoCE (boot.sh), so that libfabric's verbs
# provider registers memory and connects queue pairs.
#   OSC_RDMA_MACHINE   folder of the machine's disk (default: build/rdma); a second run uses what it finds there
#   OSC_RDMA_SECONDS   bounds a run, default 900; then the exit code is 124
# The first run downloads some 250 MB. Needs root. Ends with 77 where this machine cannot have an emulator.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
payload=${1:?"usage: sh tests/rdma/machine.sh FOLDER SCRIPT"}
script=${2:?"usage: sh tests/rdma/machine.sh FOLDER SCRIPT"}
folder=${OSC_RDMA_MACHINE:-$source/build/rdma}
seconds=${OSC_RDMA_SECONDS:-900}
processors=4
packages=linux-image-amd64,initramfs-tools,kmod,iproute2,procps,mpich,libfabric1,libfabric-bin,ibverbs-providers,rdma-core
packages=$packages,ibverbs-utils,perftest,strace,python3,libstdc++6

skip() {
    echo "rdma: SKIPPED: $1" >&2
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "the emulated machine needs root"
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || skip "the emulated machine needs Debian on amd64"
sh "$source/cmake/install-packages.sh" rdma || skip "no emulator: cmake/install-packages.sh rdma failed"

# The disk holds the release; what a run brings comes on a second one.
make_disk() {
    root=$folder/root
    rm -rf "$root" "$folder/complete"
    mkdir -p "$root" "$folder/packages"
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    echo "rdma: making the machine's disk in $folder; this happens once" >&2
    debootstrap --variant=minbase --cache-dir="$folder/packages" --include="$packages" "$codename" "$root" \
        "$(sh "$source/tests/hosts/mirror.sh")" >"$folder/debootstrap.log" 2>&1 || {
        tail -n 5 "$folder/debootstrap.log" >&2
        echo "rdma: debootstrap could not make the machine" >&2
        return 1
    }
    cat >"$root/init-payload" <<'INIT'
#!/bin/sh
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /payload
mount -t tmpfs -o size=75% payload /payload
tar -xf /dev/vdb -C /payload
exec sh /payload/.boot
INIT
    chmod +x "$root/init-payload"
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
    cp "$root"/boot/vmlinuz-* "$folder/kernel"
    cp "$root"/boot/initrd.img-* "$folder/initrd"
    mke2fs -q -F -t ext4 -O ^has_journal -d "$root" "$folder/disk" 3G
    rm -rf "$root"
    echo "$packages" >"$folder/complete"
}
[ "$(cat "$folder/complete" 2>/dev/null)" = "$packages" ] || make_disk

run=$(mktemp -d -p "$folder")
trap 'rm -rf "$run"' EXIT
emulator=
trap '[ -z "$emulator" ] || kill "$emulator"; exit 130' INT
trap '[ -z "$emulator" ] || kill "$emulator"; exit 143' TERM HUP
mkdir "$run/boot"
cp "$here/boot.sh" "$run/boot/.boot"
echo "$script" >"$run/boot/.script"
tar -cf "$run/payload" -C "$payload" . -C "$run/boot" .boot .script
: >"$run/code"

# Three serial lines: the kernel's console, the script's output, its exit code. Nothing that the machine writes stays.
status=0
timeout -k 10 "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp "$processors" -m 4096 -display none \
    -monitor none -no-reboot -nic none -kernel "$folder/kernel" -initrd "$folder/initrd" \
    -append "root=/dev/vda rw console=ttyS0 init=/init-payload panic=5 mitigations=off no_timer_check quiet" \
    -drive "file=$folder/disk,format=raw,if=virtio,snapshot=on" -drive "file=$run/payload,format=raw,if=virtio,readonly=on" \
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
