# Builds XPMEM's module for the kernel of the emulated machine, and its library:
#   sh build_xpmem.sh SOURCE FOLDER
# SOURCE: a tree of github.com/openucx/xpmem. FOLDER: the machine's (machine.sh), where xpmem/ then has xpmem.ko and
# libxpmem.so.0. It downloads the kernel's headers, 14 MB, once. Ends with 77 where that cannot be.
set -eu
source=${1:?"usage: sh build_xpmem.sh SOURCE FOLDER"}
folder=$(cd "${2:?"usage: sh build_xpmem.sh SOURCE FOLDER"}" && pwd)
[ ! -f "$folder/xpmem/xpmem.ko" ] || exit 0

skip() {
    echo "rdma: no XPMEM: $1" >&2
    exit 77
}
[ -f "$source/kernel/xpmem_main.c" ] || skip "$source has no source of it"
sh "$(dirname "$0")/../../cmake/install-packages.sh" xpmem || skip "cmake/install-packages.sh xpmem failed"
for modules in "$folder"/system/usr/lib/modules/*; do
    version=${modules##*/}
done
build=$(mktemp -d -p "$folder")
trap 'rm -rf "$build"' EXIT
kbuild=linux-kbuild-$(echo "$version" | cut -d . -f 1,2)
(cd "$build" && apt-get download "linux-headers-$version" "linux-headers-${version%-*}-common" "$kbuild" >/dev/null 2>&1) ||
    skip "no headers of Linux $version"
for package in "$build"/*.deb; do
    dpkg-deb -x "$package" "$build/all"
done
# The headers name each other by the folders in which Debian installs them.
headers=$build/all/usr/src/linux-headers-$version
common=$build/all/usr/src/linux-headers-${version%-*}-common
sed -i "s,/usr/src/,$build/all/usr/src/," "$headers/Makefile"
cp -r "$source" "$build/source"
cd "$build/source"
{
    autoreconf -fi
    ./configure --with-kerneldir="$headers" --with-kernelinc="$common" --with-kernelvers="$version" \
        CPPFLAGS="-I$headers/include -I$headers/arch/x86/include/generated -I$headers/arch/x86/include/generated/uapi"
    make -C kernel
    make -C lib
} >"$folder/xpmem.log" 2>&1 || {
    tail -n 15 "$folder/xpmem.log" >&2
    skip "it does not build for Linux $version"
}
mkdir -p "$folder/xpmem"
cp -L lib/.libs/libxpmem.so.0 kernel/xpmem.ko "$folder/xpmem"
