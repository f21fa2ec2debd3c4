#!/bin/sh
# Runs test programs in the emulated machine with an RDMA device (machine.sh), many cases in one boot:
#   sh tests/rdma/run.sh [--build FOLDER] [--env K=V]... [--list] [SELECTION...]
# A SELECTION is an extended regular expression that a part of a case's name matches, or smoke: a few cases, a minute.
# Without one all cases run. cases.cmake has the cases; --list prints their names. The programs come from build/release,
# which the script brings up to date first; with --build they come from FOLDER as they are. --env sets a variable for all
# cases. Prints one line for each case, the output of those that fail, and a summary. Ends with 0 if all cases pass, and
# with 77 where this machine cannot have an emulator.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=
settings=
list_only=
smoke='^(info\.check|unit\.fabric_choice_test|smoke\..*)$'
chosen=
while [ $# -gt 0 ]; do
    case "$1" in
        --build) build=$2; shift ;;
        --env) settings="$settings $2"; shift ;;
        --list) list_only=1 ;;
        smoke) chosen="$chosen|$smoke" ;;
        *) chosen="$chosen|$1" ;;
    esac
    shift
done
if [ -z "$build" ]; then
    build=$source/build/release
    sh "$source/cmake/build-preset.sh" release rdma_programs >&2
fi

payload=$(mktemp -d)
trap 'rm -rf "$payload"' EXIT
machine=
trap '[ -z "$machine" ] || kill "$machine"; exit 130' INT
trap '[ -z "$machine" ] || kill "$machine"; exit 143' TERM HUP
# Without a selection all but the groups measure and smoke.
awk -F '\t' -v chosen="${chosen#|}" 'chosen == "" ? $1 !~ /^(measure|smoke)\./ : $1 ~ chosen' \
    "$build/tests/rdma/cases" >"$payload/cases"
if [ -n "$list_only" ]; then
    cut -f 1 "$payload/cases"
    exit
fi
[ -s "$payload/cases" ] || { echo "rdma: no case matches" >&2; exit 1; }

# The files lie in the machine as in the build folder; test scripts lie beside it, as in the source tree.
{
    cut -f 3 "$payload/cases" | tr ' ' '\n'
    printf '%s\n' src/libosc.so src/libosc.so.1 src/libosc_ofi.so src/libosc_adopt.so src/libosc_reports.so src/libosc_verify.so src/libosc_check.so src/tools/osc_info tests/libosc_spy.so tests/unit/libosc_ofi.so
} | sort -u | while read -r file; do
    [ -n "$file" ] && [ -e "$build/$file" ] || continue
    mkdir -p "$payload/build/$(dirname "$file")"
    cp -L "$build/$file" "$payload/build/$file"
done
mkdir -p "$payload/source/tests"
cp -r "$source/tests/fault" "$source/tests/rdma" "$payload/source/tests/"
for setting in $settings; do
    echo "export '$setting'"
done >"$payload/settings"

# The time of the cases and of the start, at most what ctest allows.
limit=$(awk -F '\t' '{ all += $2 } END { print all < 13700 ? all + 300 : 14000 }' "$payload/cases")
status=0
OSC_RDMA_SECONDS=${OSC_RDMA_SECONDS:-$limit} sh "$here/machine.sh" "$payload" source/tests/rdma/inside.sh &
machine=$!
wait "$machine" || status=$?
exit "$status"
