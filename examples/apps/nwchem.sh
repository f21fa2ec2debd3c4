#!/bin/sh
# Runs NWChem (Debian's package nwchem-mpich) on water with four methods and compares three ways to run two processes:
# the host MPI alone, the host with the work-around of the package's README.Debian (ARMCI_USE_WIN_ALLOCATE=0), and libosc
# preloaded. It checks each result against that of one process and prints the times side by side.
#
# usage: sh examples/apps/nwchem.sh [--library FILE] [--rounds N] [scf|dft|mp2|property]...
#   --library FILE  libosc.so (default: the release build's)
#   --rounds N      runs of each kind, in turn; the table has their medians (default 3)
#
# As root it installs the package if that is missing. Exit status: 0 if all results with libosc are right, 1 if one is
# wrong, 2 for wrong arguments, 77 if there is no NWChem and none can be installed.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
library=$folder/../../build/release/src/libosc.so
rounds=3
inputs=""
usage() {
    sed -n '/^# usage:/,/^#$/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
        --library | --rounds)
            [ $# -ge 2 ] || usage
            if [ "$1" = --library ]; then library=$2; else rounds=$2; fi
            shift
            ;;
        scf | dft | mp2 | property) inputs="$inputs $1" ;;
        *) usage ;;
    esac
    shift
done
case $rounds in '' | 0 | *[!0-9]*) usage ;; esac
inputs=${inputs:-scf dft mp2 property}

if ! command -v nwchem.mpich >/dev/null; then
    timeout -k 5 600 sh "$folder/../../cmake/install-packages.sh" apps || true
    if ! command -v nwchem.mpich >/dev/null; then
        echo "nwchem: SKIPPED: the package nwchem-mpich is missing and could not be installed" >&2
        exit 77
    fi
fi
if [ ! -f "$library" ]; then
    echo "nwchem: no library at $library; build the release preset first" >&2
    exit 1
fi
library=$(cd "$(dirname "$library")" && pwd)/$(basename "$library")
mpiexec=$(command -v mpiexec.mpich || command -v mpiexec)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# launch NAME INPUT PROCESSES OPTIONS...: one run in a folder of its own; its output is $work/NAME.
launch() {
    name=$1 input=$2 processes=$3
    shift 3
    rm -rf "$work/scratch"
    mkdir "$work/scratch"
    (cd "$work/scratch" && timeout -k 5 120 "$mpiexec" "$@" -n "$processes" nwchem.mpich "$folder/nwchem/$input.nw") \
        >"$work/$name" 2>&1 || true
}

# run VARIANT INPUT: the two processes of one of the three variants.
run() {
    case $1 in
        host) launch "$1" "$2" 2 -genv MPIR_CVAR_POLLS_BEFORE_YIELD 1 ;;
        around) launch "$1" "$2" 2 -genv MPIR_CVAR_POLLS_BEFORE_YIELD 1 -genv ARMCI_USE_WIN_ALLOCATE 0 ;;
        libosc)
            launch "$1" "$2" 2 -genv MPIR_CVAR_POLLS_BEFORE_YIELD 1 -genv LD_PRELOAD "$library" -genv OSC_FALLBACK error
            ;;
    esac
}

# results FILE: the last of each energy and the dipole moment.
results() {
    awk '/Total SCF energy =/ { scf = $NF } /Total DFT energy =/ { dft = $NF } /Total MP2 energy/ { mp2 = $NF }
         /Total dipole/ { dipole = $3 } END { print scf + 0, dft + 0, mp2 + 0, dipole + 0 }' OFMT=%.9f "$1"
}

# agree FILE EXPECTED: whether the run ended and each of its results is within 1e-6 (atomic units) of the expected one.
agree() {
    grep -q 'Total times' "$1" && echo "$(results "$1") $2" | awk '{
        for (i = 1; i <= 4; ++i) { d = $i - $(i + 4); if (d > 1e-6 || d < -1e-6) exit 1 } }'
}

# seconds FILE: the wall time that NWChem prints.
seconds() {
    sed -n 's/.*Total times.*wall: *\([0-9.]*\)s.*/\1/p' "$1" | tail -1
}

failed=0
host="" around="" libosc="" # set by eval below
printf '%-10s %20s %14s %14s %14s %10s\n' "water" "result" "host" "work-around" "libosc" "ratio"
for input in $inputs; do
    launch one "$input" 1
    expected=$(results "$work/one")
    if ! grep -q 'Total times' "$work/one"; then
        echo "nwchem: $input fails on one process without libosc:" >&2
        tail -20 "$work/one" >&2
        exit 1
    fi
    rm -f "$work"/times.*
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        for variant in host around libosc; do
            run "$variant" "$input"
            if agree "$work/$variant" "$expected"; then
                seconds "$work/$variant" >>"$work/times.$variant"
            else
                echo wrong >>"$work/times.$variant"
                if [ "$variant" = libosc ]; then
                    echo "nwchem: $input with libosc: expected $expected, got $(results "$work/$variant")" >&2
                    tail -20 "$work/$variant" >&2
                    failed=1
                fi
            fi
        done
    done
    for variant in host around libosc; do
        if grep -q wrong "$work/times.$variant"; then
            eval "$variant=wrong"
        else
            eval "$variant=$(sort -n "$work/times.$variant" | sed -n "$(((rounds + 1) / 2))p")"
        fi
    done
    ratio=-
    [ "$around" = wrong ] || [ "$libosc" = wrong ] || ratio=$(awk "BEGIN { printf \"%.2f\", $libosc / ($around + 1e-9) }")
    case $input in
        mp2) shown=$(echo "$expected" | cut -d' ' -f3) ;;
        dft) shown=$(echo "$expected" | cut -d' ' -f2) ;;
        property) shown=$(echo "$expected" | cut -d' ' -f4) ;;
        *) shown=$(echo "$expected" | cut -d' ' -f1) ;;
    esac
    printf '%-10s %20s %14s %14s %14s %10s\n' "$input" "$shown" "$host" "$around" "$libosc" "$ratio"
done
echo "seconds of wall time, medians of $rounds; result: of one process; ratio: libosc to the host with its work-around"
exit $failed
