#!/bin/sh
# Configures a preset and builds it, whatever an earlier command left in its build folder:
#   [OSC_CONFIGURE="-DOPTION=VALUE..."] sh cmake/build-preset.sh PRESET [TARGET...]
# With OSC_ONLY_CONFIGURE it builds nothing.
# The preset sets every option that decides what is built, so options of an earlier configuration do not stay. Where CMake
# refuses the folder's cache (another generator, a clone that moved, a compiler that is gone) the cache is made anew.
# A build that is killed can leave a truncated object that looks up to date: the file .building marks the folder while a
# build runs, and a build that finds the mark starts from clean.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
folder=build/$preset
mark=$folder/.building

if ! log=$(cmake --preset "$preset" ${OSC_CONFIGURE-} 2>&1); then
    echo "build: CMake refuses what $folder holds; its cache is made anew" >&2
    if ! log=$(cmake --fresh --preset "$preset" ${OSC_CONFIGURE-} 2>&1); then
        printf '%s\n' "$log" >&2
        echo "build: cmake could not configure $folder" >&2
        exit 1
    fi
fi
[ -z "${OSC_ONLY_CONFIGURE-}" ] || exit 0
if [ -f "$mark" ]; then
    echo "build: an earlier build in $folder was killed; building from clean" >&2
    cmake --build --preset "$preset" --target clean
fi
: >"$mark"
# A failed build and one that a signal ends have removed their unfinished files themselves.
trap 'rm -f "$mark"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if [ $# -gt 0 ]; then
    set -- --target "$@"
fi
cmake --build --preset "$preset" -j "$(nproc)" "$@"
