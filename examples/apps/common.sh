# shellcheck shell=sh disable=SC2154,SC2034 # the scripts set and use variables
# Sourced by the scripts of this folder. Reads their options, finds the library and the launcher, and makes the folder $work
# for builds and outputs, which is removed at the end. Has the loops over tests that the scripts share.
# A script sets ranks and rounds, the defaults of --ranks and --rounds, before; with an empty ranks it has no --ranks.
# Sets library, ranks, rounds, build, operands (the arguments that are no options), mpiexec, work and failed=0. A wrong argument
# ends the script with 2, a missing library with 1.
name=$(basename "$0" .sh)
library=$folder/../../build/release/src/libosc.so
operands=""
build=""
failed=0
default_ranks=$ranks
default_rounds=$rounds
usage() {
    {
        sed -n '/^# usage:/,/^#$/s/^# \{0,1\}//p' "$0"
        echo "  --library FILE  libosc.so (default: the release build's)"
        [ -z "$default_ranks" ] || echo "  --ranks N       processes (default $default_ranks)"
        echo "  --rounds N      runs of each kind (default $default_rounds)"
        echo "  --build DIR     keeps what the script builds there, and uses what is there"
        echo
        echo "Exit status: 0 if libosc is right wherever the host is (scripts that print times: everywhere), 1 if it is not or a"
        echo "build fails, 2 for wrong arguments, 77 if a source tree or package is missing."
    } >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
        --library | --ranks | --rounds | --build)
            [ $# -ge 2 ] || usage
            [ "$1" != --ranks ] || [ -n "$default_ranks" ] || usage
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
case ${ranks:-1} in 0 | *[!0-9]*) usage ;; esac
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

# mpi_compiler WRAPPER: MPICH's mpicc, mpicxx or mpifort.
mpi_compiler() {
    command -v "$1.mpich" || command -v "$1"
}

# build_once DIR COMMAND...: runs COMMAND in DIR, which it makes, unless COMMAND has succeeded there before. COMMAND may be a
# function and runs under set -e. Where it fails the script prints the end of its output and ends with 1. Not for conditions,
# in which the shell ignores set -e.
build_once() {
    place=$1
    shift
    [ ! -e "$place/built" ] || return 0
    mkdir -p "$place"
    set +e
    (
        set -e
        cd "$place"
        "$@"
        touch "$place/built"
    ) >"$build/log" 2>&1
    status=$?
    set -e
    if [ "$status" != 0 ]; then
        tail -20 "$build/log" >&2
        exit 1
    fi
}

# make_all ARGUMENT...: make with a job for each processor.
make_all() {
    make -j"$(getconf _NPROCESSORS_ONLN)" "$@"
}

# make_variable DIR VARIABLE: what the variable of DIR's makefile has.
make_variable() {
    make -s -C "$1" --eval "show-variable: ; @echo \$($2)" show-variable
}

# chosen NAME: whether NAME contains an operand, or there is none.
chosen() {
    [ -n "$operands" ] || return 0
    for part in $operands; do
        case $1 in *"$part"*) return 0 ;; esac
    done
    return 1
}

# launch VARIANT OUTPUT PROGRAM...: one run by the host MPI alone (host) or with libosc preloaded (libosc), at most $limit
# seconds (default 120) long; its output is $work/OUTPUT, first all of its standard output, then its errors and libosc's
# lines. Returns the launcher's status.
launch() {
    variant_run=$1
    preload=""
    [ "$1" = host ] || preload="-genv LD_PRELOAD $library -genv OSC_FALLBACK error"
    output=$work/$2
    shift 2
    status=0
    # shellcheck disable=SC2086 # a list of words on purpose
    timeout -k 5 "${limit:-120}" "$mpiexec" -genv MPIR_CVAR_POLLS_BEFORE_YIELD 1 $preload -n "$ranks" "$@" \
        >"$output" 2>"$work/errors" </dev/null || status=$?
    cat "$work/errors" >>"$output"
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

# served [PATTERN]: whether libosc has served calls in the last run, with OSC_VERBOSE=counters; those of the extended regular
# expression PATTERN if one is given.
served() {
    grep -q -E "^libosc: .*served: .*${1:-MPI_}" "$output"
}

right=0 number=0
# compare NAME: if the operands choose NAME, runs that test $rounds times by the host and with libosc and prints how often each
# is right. The script's function "passes VARIANT" makes one run and tells whether it is right. Reports a run that is right by the
# host only.
compare() {
    chosen "$1" || return 0
    [ "$number" -gt 0 ] || printf '%-44s %16s %16s\n' "test" "host" "libosc"
    number=$((number + 1))
    host=0 libosc=0 round=0
    rm -f "$work"/times.*
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        ! passes host || host=$((host + 1))
        if passes libosc; then
            libosc=$((libosc + 1))
        elif [ "$host" = "$round" ]; then
            report "$1 is right by the host, but not with libosc"
        fi
    done
    [ "$libosc" -lt "$rounds" ] || right=$((right + 1))
    printf '%-44s %16s %16s\n' "$1" "$(tally host "$host")" "$(tally libosc "$libosc")"
}

# conclude: prints the sum of all comparisons and ends the script.
conclude() {
    [ "$number" -gt 0 ] || usage
    echo "${default_ranks:+$ranks processes; }with libosc $right of $number tests are right"
    exit "$failed"
}

# compare_times NAME: runs a program $rounds times by the host and with libosc, in turn, and prints the medians of what the
# script's function "seconds_of FILE" finds in the outputs of runs for which "passes VARIANT" is true. Reports a wrong run with
# libosc.
compare_times() {
    [ "$number" -gt 0 ] || printf '%-44s %12s %12s %10s\n' "program" "host" "libosc" "ratio"
    number=$((number + 1))
    rm -f "$work"/times.*
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        for variant in host libosc; do
            if passes "$variant"; then
                seconds_of "$output" >>"$work/times.$variant"
            elif [ "$variant" = libosc ]; then
                report "$1 with libosc is wrong"
            fi
        done
    done
    host=$(result host)
    libosc=$(result libosc)
    printf '%-44s %12s %12s %10s\n' "$1" "$host" "$libosc" "$(ratio "$host" "$libosc")"
}

# conclude_times WHAT: says whose seconds compare_times has printed and ends the script.
conclude_times() {
    echo "$ranks processes; seconds of $1, medians of $rounds; wrong, late: a run failed, or did not end in time"
    echo "ratio: libosc to the host"
    exit "$failed"
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
