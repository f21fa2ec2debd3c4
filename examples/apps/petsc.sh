#!/bin/sh
# Builds the lower half of PETSc (system and vectors; no Fortran, no C++, no package but BLAS) and runs its star forests
# (PetscSF, which its scatters use) over one-sided communication, -sf_type window, by the host alone and with libosc: PETSc's
# own tests with windows by create and allocate and each synchronisation (fence; active: post, start, complete and wait; lock),
# and with dynamic windows and fences. With the other two PETSc detaches memory before other processes have accessed it, which
# libosc refuses (docs/APPLICATIONS.md). A run is right if it prints what the same program prints with -sf_type basic, which
# sends messages: all data of each star forest. With libosc, libosc must have served the operations.
#
# usage: sh examples/apps/petsc.sh [--library FILE] [--rounds N] [--build DIR] TREE [CASE]...
#   TREE            a clone of https://github.com/petsc/petsc
#   CASE            a part of the names of the cases to run, as sparse (default: all)
#   --library FILE  libosc.so (default: the release build's)
#   --rounds N      runs of each combination (default 1)
#   --build DIR     keeps the build there, and uses one that is there
#
# The tests fix the numbers of processes (1, 2 or 4). Needs Python 3 and make; as root it installs liblapack-dev if that is missing.
# Exit status: 0 if every combination that is right by the host is right with libosc, 1 if one is not or the build fails, 2
# for wrong arguments, 77 without TREE.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=4
rounds=1
. "$folder/common.sh"
source_tree src/vec/is/sf/impls/window/sfwindow.c https://github.com/petsc/petsc
install_packages liblapack-dev
compiler=$(command -v mpicc.mpich || command -v mpicc)
export OSC_VERBOSE=counters
forest=src/vec/is/sf
programs="$forest/tutorials/ex1 $forest/tutorials/ex2 $forest/tests/ex4 $forest/tests/ex24"

# A build in its own copy of the tree: PETSc writes into its sources. Only what the tests need is compiled.
build_petsc() {
    cp -R "$tree/." "$build/source"
    cd "$build/source"
    unset PETSC_DIR PETSC_ARCH
    python3 ./configure PETSC_ARCH=osc --with-cc="$compiler" --with-mpiexec="$mpiexec" --with-cxx=0 --with-fc=0 --with-cudac=0 \
        --with-hipc=0 --with-syclc=0 --with-x=0 --with-debugging=0 --with-shared-libraries=0 --with-single-library=0 \
        COPTFLAGS=-O1
    make -f gmakefile PETSC_DIR="$build/source" PETSC_ARCH=osc osc/lib/libpetscsys.a osc/lib/libpetscvec.a
    for program in $programs; do
        "$compiler" -O1 -Iinclude -Iosc/include "$program.c" -o "$build/$(echo "$program" | tr / -)" -Losc/lib -lpetscvec \
            -lpetscsys -llapack -lblas -lm -ldl
    done
}
if [ ! -e "$build/built" ]; then
    mkdir -p "$build/source"
    if ! (build_petsc && touch "$build/built") >"$build/log" 2>&1; then
        tail -20 "$build/log" >&2
        exit 1
    fi
fi

# data FILE: an output without what names the implementation of the star forest, and without libosc's counters.
data() {
    grep -v -e '^libosc' -e type -e sort -e 'current info' -e '^WARNING! There are options' "$work/$1" || true
}

# served: whether libosc served the data and the synchronisation of the last run.
served() {
    grep -q -E '^libosc.*MPI_(Get|Rget|Accumulate|Get_accumulate)' "$work/got"
}

# run_case NAME RANKS PROGRAM FLAVOURS OPTION...: all combinations of one program, each against its own messages' answer.
run_case() {
    case_name=$1 ranks=$2 program=$build/$(echo "$3" | tr / -) flavours=$4
    shift 4
    chosen=${operands:+no}
    for part in $operands; do
        case $case_name in *"$part"*) chosen="" ;; esac
    done
    [ -z "$chosen" ] || return 0
    if ! launch host expected "$program" "$@" -sf_type basic; then
        report "$case_name fails with messages"
        exit 1
    fi
    data expected >"$work/wanted"
    for flavour in $flavours; do
        syncs="fence active lock"
        [ "$flavour" != dynamic ] || syncs=fence
        for sync in $syncs; do
            number=$((number + 1))
            host=0 libosc=0 round=0
            rm -f "$work"/times.*
            while [ "$round" -lt "$rounds" ]; do
                round=$((round + 1))
                for variant in host libosc; do
                    if launch "$variant" got "$program" "$@" -sf_type window -sf_window_flavor "$flavour" \
                        -sf_window_sync "$sync" && data got | cmp -s - "$work/wanted" && { [ "$variant" = host ] || served; }; then
                        eval "$variant=\$(($variant + 1))"
                    elif [ "$variant" = libosc ] && [ "$host" = "$round" ]; then
                        report "$case_name, $flavour, $sync is right by the host, but not with libosc"
                    fi
                done
            done
            [ "$libosc" -lt "$rounds" ] || right=$((right + 1))
            printf '%-36s %16s %16s\n' "$case_name, $flavour, $sync" "$(tally host "$host")" "$(tally libosc "$libosc")"
        done
    done
}

right=0 number=0
all="create dynamic allocate"
printf '%-36s %16s %16s\n' "case" "host" "libosc"
run_case forest 4 $forest/tutorials/ex1 "$all" -test_bcast -test_reduce -test_degree -test_gather -test_scatter -test_invert
run_case embedded 4 $forest/tutorials/ex1 "create allocate" -test_embed
run_case all-to-all 4 $forest/tutorials/ex1 "$all" -test_bcast -test_sf_distribute
run_case overlapping 2 $forest/tutorials/ex2 "$all"
run_case composed 1 $forest/tests/ex4 "$all" -sparse_sfB
run_case sparse 4 $forest/tests/ex24 "$all"
echo "with libosc $right of $number combinations are right"
[ "$number" -gt 0 ] || usage
exit "$failed"
