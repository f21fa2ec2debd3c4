#!/bin/sh
# Runs the recipes of docs/packaging in a clean Debian 12: the module file by environment-modules and by Lmod, and the container file
# by buildah, with the Debian package that tests/packages/deb.sh has made:
#   sh tests/packages/recipes.sh BUILD [module|container...]
# BUILD has the program histogram; OSC_CHROOTS is the folder of the chroots and of the downloaded packages (default: build/hosts).
# Needs root and a registry of packages; ends with 77 where it cannot make a chroot.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:?"usage: sh tests/packages/recipes.sh BUILD [module|container...]"}" && pwd)
shift
[ $# -gt 0 ] || set -- module container
folder=${OSC_CHROOTS:-$source/build/hosts}
unset OSC_CHROOTS LD_PRELOAD
. "$source/tests/hosts/chroot.sh"
can_make_roots packages.recipes
suite=bookworm
root=
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
make_root $suite "$folder/$suite.clean"

# new_root PACKAGE...: a copy of the clean system, with the packages.
new_root() {
    rm -rf "$root"
    root=$folder/$suite.recipes.$$
    cp -a "$folder/$suite.clean" "$root"
    inside "$root" sh -eu -c 'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "$@" >/dev/null' inside "$@"
}

module() {
    for tool in modules lmod/lmod; do
        package=lmod
        [ $tool != modules ] || package=environment-modules
        new_root libstdc++6 man-db $package
        DESTDIR=$root cmake --install "$build" --prefix /opt/osc >/dev/null
        mkdir -p "$root/modules/osc"
        cp docs/packaging/modulefile "$root/modules/osc/0.1.0"
        # shellcheck disable=SC2016 # the inner shell expands them
        inside "$root" bash -e -c '
            . /usr/share/$1/init/bash
            module use /modules
            module load osc
            [ "$(command -v oscrun)" = /opt/osc/bin/oscrun ]
            oscrun --version
            [ "$(man -w 7 osc)" = /opt/osc/share/man/man7/osc.7 ]
            module unload osc
            ! command -v oscrun' inside $tool
        echo "module file: works by $package"
    done
}

container() {
    package=$(ls -t build/deb/libosc_*.deb | head -n 1)
    [ -n "$package" ] || { echo "recipes: tests/packages/deb.sh has made no package" && exit 1; }
    new_root buildah
    mkdir "$root/context"
    cp "$package" "$build/examples/histogram" "$root/context"
    tar -C "$folder/$suite.clean" --exclude=./.complete -cf "$root/base.tar" .
    # debian:12 is the clean system itself: no registry of images is asked.
    # shellcheck disable=SC2016 # the inner shell expands them
    inside "$root" sh -eu -c '
        export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
        mkdir -p /etc/containers
        echo "{\"default\": [{\"type\": \"insecureAcceptAnything\"}]}" >/etc/containers/policy.json
        echo "unqualified-search-registries = [\"localhost\"]" >/etc/containers/registries.conf
        base=$(buildah from scratch)
        buildah add -q $base /base.tar / >/dev/null
        buildah commit -q $base localhost/debian:12 >/dev/null
        buildah bud -q --pull-never -t libosc -f /osc/docs/packaging/Containerfile /context
        job=$(buildah from --pull-never localhost/libosc)
        buildah copy -q $job /context/histogram /histogram >/dev/null
        buildah run $job -- osc_info --version
        buildah run $job -- oscrun -v mpiexec -n 2 /histogram' inside >"$root/said" 2>&1 || {
        cat "$root/said"
        exit 1
    }
    for line in 'libosc: rank 0: libosc .* over MPICH' 'verified=yes'; do
        grep "$line" "$root/said" || { cat "$root/said" && exit 1; }
    done
    echo "container file: works by buildah"
}

cd "$source"
for recipe; do
    "$recipe"
done
