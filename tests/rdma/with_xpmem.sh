# sh with_xpmem.sh COMMAND...: runs a command with XPMEM's module loaded and its library at hand. Ends with the command's
# code, or with 1 if a page stays pinned that the module has attached.
set -u
xpmem=/payload/build/xpmem
if [ ! -e "$xpmem/xpmem.ko" ]; then
    echo "no XPMEM: OSC_XPMEM_SOURCE must name a tree of github.com/openucx/xpmem (machine.sh)"
    exit 77
fi
[ -e /dev/xpmem ] || insmod "$xpmem/xpmem.ko" || exit 1
LD_LIBRARY_PATH=$xpmem:/payload/build/src "$@"
status=$?
pinned() {
    awk '/ pinned/ { more = $NF } / unpinned/ { print more - $NF }' /proc/xpmem/global_pages
}
[ "$status" -eq 0 ] || exit "$status"
[ "$(pinned)" -eq 0 ] || {
    echo "FAILED: pages that stay pinned: $(pinned)"
    cat /proc/xpmem/global_pages
    exit 1
}
