#!/bin/sh
# Builds PETSc up to its linear solvers (no Fortran, no C++, no package but BLAS) and runs its star forests (PetscSF, which its
# scatters use) over one-sided communication, -sf_type window, by the host alone and with libosc: PETSc's own tests with windows
# by create and allocate and each synchronisation (fence; active: post, start, complete and wait; lock), and with dynamic windows
# and fences; then Krylov solvers, whose matrices scatter their vectors that way. It leaves out dynamic windows with another
# synchronisation and bicg with locks on allocated windows, in which PETSc does not synchronise (docs/GUIDE.md). A run is
# right if it prints what the same program prints with -sf_type basic, which sends messages: all data of each star forest, the
# residuals of each iteration. With libosc, libosc must have served the operations.
#
# usage: sh examples/apps/petsc.sh [OPTION]... TREE [TEST]...
#   TREE            a clone of https://github.com/petsc/petsc
#   TEST            a part of the names of the tests to run, as sparse (default: all)
#
# The tests fix the numbers of processes (1, 2 or 4). Needs Python 3 and make; as root it installs liblapack-dev if that is missing.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=""
rounds=1
. "$folder/common.sh"
source_tree src/vec/is/sf/impls/window/sfwindow.c https://github.com/petsc/petsc
install_packages liblapack-dev
export OSC_VERBOSE=counters
forest=src/vec/is/sf
solver=src/ksp/ksp/tutorials

# PETSc writes into its sources, so that a build has a copy.
build_petsc() {
    compiler=$(mpi_compiler mpicc)
    mkdir -p source
    cp -R "$tree/." source
    cd source
    unset PETSC_DIR PETSC_ARCH
    python3 ./configure PETSC_ARCH=osc --with-cc="$compiler" --with-mpiexec="$mpiexec" --with-cxx=0 --with-fc=0 --with-cudac=0 \
        --with-hipc=0 --with-syclc=0 --with-x=0 --with-debugging=0 --with-shared-libraries=0 --with-single-library=0 \
        COPTFLAGS=-O1
    make_all -f gmakefile PETSC_DIR="$PWD" PETSC_ARCH=osc osc/lib/libpetscsys.a osc/lib/libpetscvec.a osc/lib/libpetscmat.a \
        osc/lib/libpetscdm.a osc/lib/libpetscksp.a
    for program in $forest/tutorials/ex1 $forest/tutorials/ex2 $forest/tests/ex4 $forest/tests/ex24 $solver/ex2 $solver/ex5; do
        "$compiler" -O1 -Iinclude -Iosc/include "$program.c" -o "../$(echo "$program" | tr / -)" -Losc/lib -lpetscksp -lpetscdm \
            -lpetscmat -lpetscvec -lpetscsys -llapack -lblas -lm -ldl
    done
}
build_once "$build" build_petsc

# data: the last output without what names the implementation of the star forest, and without libosc's counters.
data() {
    grep -v -e '^libosc' -e type -e sort -e 'current info' -e '^WARNING! There are options' "$output" || true
}

# passes VARIANT: one run with windows against the data of a run with messages, which is made once for each program.
passes() {
    # shellcheck disable=SC2086 # lists of words on purpose
    if [ ! -e "$work/wanted" ]; then
        if ! launch host expected "$build/$program" $options -sf_type basic; then
            report "$program fails with messages"
            exit 1
        fi
        data >"$work/wanted"
    fi
    # shellcheck disable=SC2086 # lists of words on purpose
    launch "$1" got "$build/$program" $options -sf_type window -sf_window_flavor "$flavour" -sf_window_sync "$sync" &&
        data | cmp -s - "$work/wanted" && { [ "$1" = host ] || served 'MPI_(Get|Rget|Accumulate|Get_accumulate)'; }
}

all="create dynamic allocate"
# combinations TEST RANKS PROGRAM FLAVOURS OPTION...: one program with each window and synchronisation.
combinations() {
    test=$1 ranks=$2 program=$(echo "$3" | tr / -) flavours=$4
    shift 4
    options=$*
    rm -f "$work/wanted"
    for flavour in $flavours; do
        for sync in fence active lock; do
            case "$test, $flavour, $sync" in
                *dynamic,\ active | *dynamic,\ lock | bicg,\ allocate,\ lock) ;;
                *) compare "$test, $flavour, $sync" ;;
            esac
        done
    done
}
combinations forest 4 $forest/tutorials/ex1 "$all" -test_bcast -test_reduce -test_degree -test_gather -test_scatter -test_invert
combinations embedded 4 $forest/tutorials/ex1 "create allocate" -test_embed
combinations all-to-all 4 $forest/tutorials/ex1 "$all" -test_bcast -test_sf_distribute
combinations overlapping 2 $forest/tutorials/ex2 "$all"
combinations composed 1 $forest/tests/ex4 "$all" -sparse_sfB
combinations sparse 4 $forest/tests/ex24 "$all"
combinations gmres 4 $solver/ex2 "$all" -m 40 -n 40 -ksp_type gmres -pc_type bjacobi -ksp_monitor
combinations bicg 4 $solver/ex2 "$all" -m 40 -n 40 -ksp_type bicg -pc_type jacobi -ksp_monitor
combinations schwarz 4 $solver/ex5 "$all" -pc_type asm -ksp_monitor
conclude
