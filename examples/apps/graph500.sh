#!/bin/sh
# Builds Graph500's reference breadth-first search by RMA (version 2.1.4: MPI_Accumulate of MPI_MIN and MPI_BOR between fences,
# in four windows of MPI_Win_create for each search) and runs it by the host alone and with libosc. The program validates each
# of its 64 trees, by gets and puts of its own. The memory of its windows comes from MPI_Alloc_mem; in the second build it is
# the program's own (malloc).
#
# usage: sh examples/apps/graph500.sh [OPTION]... TREE
#   TREE            a clone of https://github.com/graph500/graph500 at the tag graph500-2.1.4
#
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=3
. "$folder/common.sh"
source_tree mpi/bfs_one_sided.c https://github.com/graph500/graph500

# compile_search NAME OPTION...: the search, with further options of the compiler.
compile_search() {
    program=$1
    shift
    search="$tree/mpi/bfs_one_sided.c"
    for part in main oned_csr oned_csc utils validate onesided onesided_emul; do
        search="$search $tree/mpi/$part.c"
    done
    for part in graph_generator make_graph splittable_mrg utils; do
        search="$search $tree/generator/$part.c"
    done
    # shellcheck disable=SC2086 # a list of files on purpose
    "$(mpi_compiler mpicc)" -w -O2 -std=gnu11 -fopenmp -Drestrict=__restrict__ -DNDEBUG -DGRAPH_GENERATOR_MPI $search "$@" -lm \
        -o "$program"
}
build_searches() {
    compile_search alloc_mem
    cat >own_memory.c <<'SOURCE'
#include <mpi.h>
#include <stdlib.h>

int __wrap_MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *base)
{
    (void)info;
    *(void **)base = malloc(size);
    return *(void **)base ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int __wrap_MPI_Free_mem(void *base)
{
    free(base);
    return MPI_SUCCESS;
}
SOURCE
    compile_search malloc own_memory.c -Wl,--wrap=MPI_Alloc_mem,--wrap=MPI_Free_mem
}
build_once "$build" build_searches
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

# Invalid trees have no statistics.
passes() {
    launch "$1" got "$build/$memory" "$scale" && grep -q '^median_TEPS:' "$output"
}
seconds_of() {
    sed -n 's/^median_time: *\([0-9.e-]*\)$/\1/p' "$1"
}
for scale in 8 11; do
    for memory in alloc_mem malloc; do
        compare_times "2^$scale vertices, $memory"
    done
done
conclude_times "a search"
