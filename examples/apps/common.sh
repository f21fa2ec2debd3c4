# Sourced by the scripts of this folder. Reads their options, finds the library and the launcher, and makes the folder $work
# for builds and outputs, which is removed at the end.
#   --library FILE  libosc.so (default: the release build's)
#   --ranks N       processes (default: $ranks as the script sets it before)
#   --rounds N      runs of each kind (default: $rounds as the script sets it before)
#   --build DIR     keeps the build there, and uses one that is there
# Sets library, ranks, rounds, build, operands (the other arguments), mpiexec, work and failed=0. A wrong argument ends the script
# with 2, a missing library with 1.
name=$(basename "$0" .sh)
library=$folder/../../build/release/src/libosc.so
operands=""
build=""
failed=0
usage() {
    sed -n '/^# usage:/,/^#$/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
        --library | --ranks | --rounds | --build)
            [ $# -ge 2 ] || usage
            case $1 in
                --library) library=$2 ;;
                --ranks) ranks=$2 ;;
                --rounds) rounds=$2 ;;
                --build) build=$2 ;;
            esac
            shift
            ;;
        -*) usage ;;
        *) operands="$operands $1" ;;
    esac
    shift
done
case $rounds in '' | 0 | *[!0-9]*) usage ;; esac
case $ranks in '' | 0 | *[!0-9]*) usage ;; esac
if [ ! -f "$library" ]; then
    echo "$name: no library at $library; build the release preset first" >&2
    exit 1
fi
library=$(cd "$(dirname "$library")" && pwd)/$(basename "$library")
mpiexec=$(command -v mpiexec.mpich || command -v mpiexec || true)
work=$(mktemp -d)
build=${build:-$work/build}
mkdir -p "$build"
build=$(cd "$build" && pwd)
trap 'rm -rf "$work"' EXIT

# skip WHY: ends the script with 77, which a test takes for "not run".
skip() {
    echo "$name: SKIPPED: $1" >&2
    exit 77
}

# source_tree FILE WHERE: sets $tree to the first operand, a folder that has FILE, and operands to the others; WHERE is what
# to fetch.
source_tree() {
    # shellcheck disable=SC2086 # a list of words on purpose
    set -- "$1" "$2" $operands
    [ $# -ge 3 ] || skip "needs the path of a source tree of $2"
    if [ ! -e "$3/$1" ]; then
        echo "$name: no $1 in $3: not a source tree of $2" >&2
        exit 2
    fi
    tree=$(cd "$3" && pwd)
    shift 3
    operands="$*"
}

# launch VARIANT OUTPUT PROGRAM...: one run by the host MPI alone (host) or with libosc preloaded (libosc), at most $limit
# seconds (default 120) long; its output is $work/OUTPUT, its status the launcher's.
launch() {
    variant_run=$1
    preload=""
    [ "$1" = host ] || preload="-genv LD_PRELOAD $library -genv OSC_FALLBACK error"
    output=$work/$2
    shift 2
    status=0
    # shellcheck disable=SC2086 # a list of words on purpose
    timeout -k 5 "${limit:-120}" "$mpiexec" -genv MPIR_CVAR_POLLS_BEFORE_YIELD 1 $preload -n "$ranks" "$@" \
        >"$output" 2>&1 </dev/null || status=$?
    if [ "$status" = 124 ]; then
        echo "no end within ${limit:-120} s" >>"$output"
        touch "$work/times.late.$variant_run"
    fi
    return "$status"
}

# install_packages NAME...: Debian packages; as root it installs those that are missing with the others of the group apps,
# and skips where that fails.
install_packages() {
    dpkg-query -W "$@" >/dev/null 2>&1 || timeout -k 5 600 sh "$folder/../../cmake/install-packages.sh" apps || true
    dpkg-query -W "$@" >/dev/null 2>&1 || skip "needs the packages $*, which could not be installed"
}

# tally VARIANT RIGHT: "RIGHT of $rounds", and "late" if a run since the last rm of $work/times.* has not ended in time.
tally() {
    late=""
    [ ! -e "$work/times.late.$1" ] || late=", late"
    echo "$2 of $rounds$late"
}

# result VARIANT: the median of $work/times.VARIANT, one number a line. If it has fewer lines than rounds: "late" if a run has
# not ended in time, else "wrong".
result() {
    if [ -f "$work/times.$1" ] && [ "$(wc -l <"$work/times.$1")" -ge "$rounds" ]; then
        sort -n "$work/times.$1" | sed -n "$(((rounds + 1) / 2))p"
    elif [ -e "$work/times.late.$1" ]; then
        echo late
    else
        echo wrong
    fi
}

# ratio HOST LIBOSC: of two results, "-" if one is none.
ratio() {
    case "$1 $2" in
        *wrong* | *late*) echo - ;;
        *) awk "BEGIN { printf \"%.2f\", $2 / ($1 + 1e-9) }" ;;
    esac
}

# report WHAT: prints the end of the last output and notes that the script has failed.
report() {
    echo "$name: $1" >&2
    tail -20 "$output" >&2
    failed=1
}
