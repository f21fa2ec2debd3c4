# Debian releases in chroots, for scripts that source this file. They set $source, the tree, and $folder, where the chroots and the
# downloaded packages lie. Mounts are made in a mount namespace of their own, so none is left behind, however a script ends.

# can_make_roots NAME: ends the script with 77 where it can make no chroot.
can_make_roots() {
    if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null || ! command -v unshare >/dev/null; then
        echo "SKIPPED: $1: making a chroot needs root, debootstrap and unshare" >&2
        exit 77
    fi
}

# make_root SUITE ROOT: a minimal system of a release, by the mirror that apt uses on this machine; nothing if it is there.
make_root() {
    [ ! -f "$2/.complete" ] || return 0
    rm -rf "$2"
    mkdir -p "$2" "$folder/packages-$1"
    # An older debootstrap has no script of a newer release; that of sid fits all of them.
    script=/usr/share/debootstrap/scripts/$1
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
    debootstrap --variant=minbase --cache-dir="$folder/packages-$1" --include=ca-certificates \
        "$1" "$2" "$(sh "$source/tests/hosts/mirror.sh")" "$script"
    echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe-io"
    touch "$2/.complete"
}

# inside ROOT COMMAND...: runs it in the chroot, with the sources at /osc and a /dev/shm of its own, in which a host that is
# ended there leaves its segments.
inside() {
    inside_root=$1
    shift
    unshare --mount sh -eu -c '
        root=$1 source=$2
        shift 2
        # The root of the chroot is a mount of its own, which buildah needs.
        mount --bind "$root" "$root"
        for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
        mount -t tmpfs tmpfs "$root/dev/shm"
        mkdir -p "$root/osc"
        mount --bind "$source" "$root/osc"
        cp -L /etc/resolv.conf "$root/etc/resolv.conf"
        exec chroot "$root" "$@"' inside "$inside_root" "$source" "$@"
}
